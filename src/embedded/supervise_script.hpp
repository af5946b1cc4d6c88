#pragma once

// What stands between the shared server and nobody: it is the server's parent and ends it when it has been unused for a while.
//
// A shell script, and not a forked child of the program that goes on without exec: that one would keep the whole memory of the
// program that happened to come first. It asks /proc instead of redis-cli, which is not everywhere and is itself a connection.

#include <string_view>

namespace lockstep::embedded {

inline constexpr std::string_view supervise_script =
    R"sh(# Written by Lockstep. Runs one user's shared server; ends it once nobody has used it for a while.
# $1 server   $2 its directory   $3 seconds between two looks   $4 quiet looks until the end, 0 for never
# Descriptor 3 is the lock of the data directory: it goes to the server alone and is free when the server is gone.
server=$1 directory=$2 interval=$3 rounds=$4
"$server" "$directory/server.conf" &
pid=$!
exec 3>&-

# Programs touch the lock file, holding the lock, before they connect; then their connections show. One socket is the
# server's own; none at all means that /proc can't be read, which proves nothing.
look() {
    touched=$(stat -c %y "$directory/lock" 2>/dev/null)
    sockets=$(ls -l "/proc/$pid/fd" 2>/dev/null | grep -c 'socket:')
}
unused() { [ "$sockets" -eq 1 ] && [ "$touched" = "$last" ]; }

# With descriptor 9 on the lock file, closed only when the server is gone: a program that comes now waits, finds nobody
# and starts a new one. The server writes what it has before it goes.
end_if_unused() {
    flock 9 || return 0
    look
    unused || return 0
    kill -TERM "$pid"
    tries=0
    while kill -0 "$pid" 2>/dev/null; do
        sleep 0.02
        tries=$((tries + 1))
        if [ "$tries" -eq 500 ]; then kill -KILL "$pid"; fi
    done
}

watch() {
    last= quiet=0
    while sleep "$interval"; do
        look
        # Nobody can come any more: a runtime directory goes when its user logs out.
        if [ ! -d "$directory" ] && [ "$sockets" -eq 1 ]; then kill -TERM "$pid"; fi
        if unused; then quiet=$((quiet + 1)); else quiet=0; fi
        last=$touched
        [ "$quiet" -ge "$rounds" ] || continue
        quiet=0
        end_if_unused 9>>"$directory/lock"
    done
}

if [ "$rounds" -gt 0 ] && command -v flock >/dev/null && command -v stat >/dev/null; then watch & fi
wait "$pid"
trap '' TERM
kill -TERM 0  # the watcher and its sleep: this is a process group of its own
)sh";

}  // namespace lockstep::embedded
