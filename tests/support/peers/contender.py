# The same as contender.js with redis-py's Lock, which has one node:
#   python3 contender.py lock <socket> <referee's socket> <name> <contenders>
import sys
import threading
import time

import redis

_, _, node, referee, name, contenders = sys.argv
over = threading.Event()
holds = []


def contend():
    client = redis.Redis(unix_socket_path=node)
    judge = redis.Redis(unix_socket_path=referee)
    while not over.is_set():
        with client.lock(name, timeout=10, sleep=0.01):
            if judge.incr('inside') != 1:
                judge.incr('overlaps')
            holds.append(1)
            judge.decr('inside')
        time.sleep(0.001)


threads = [threading.Thread(target=contend) for _ in range(int(contenders))]
print('ready', flush=True)
for one in threads:
    one.start()
sys.stdin.read()
over.set()
for one in threads:
    one.join()
print('holds', len(holds), flush=True)
