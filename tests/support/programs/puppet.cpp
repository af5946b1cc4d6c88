// A process that holds and waits as it is told, under a name of its own: what the tests of the dashboard look at.
//   puppet <url> <client's name> [<ttl ms>]
// Answers each line of its input with one of its own, as soon as the order is under way; names are percent-encoded:
//   lock NAME            holds it when it answers: "ok"
//   want NAME            waits for it, and holds it then: "ok" at once
//   unlock NAME          "ok"
//   permits NAME N K     creates a semaphore with N permits and takes K
//   semaphore NAME N MS  creates one with N permits and this lease_ttl, and has it from then on: "ok"
//   lead NAME ID         leads this election when it answers
//   resign NAME          "ok"
//   push NAME TEXT       to a queue
//   many PREFIX COUNT    holds so many locks
//   churn PREFIX COUNT PER_SECOND   lets go of one of these and takes it again, so many times a second, until the input ends
// or with "failed: <why>". The end of its input ends it, in order.
#include "support/puppet_lines.hpp"

#include <lockstep/client.hpp>
#include <lockstep/counting_semaphore.hpp>
#include <lockstep/election.hpp>
#include <lockstep/mutex.hpp>
#include <lockstep/queue.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <iostream>
#include <map>
#include <mutex>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace {

using lockstep::test::decoded;
using std::chrono::milliseconds;

class puppet {
public:
    puppet(char const* url, char const* name, milliseconds ttl)
        : client_({.url = url, .name = name, .record = true}), options_{.ttl = ttl} {}

    void obey(std::string const& line) {
        std::istringstream words{line};
        std::string order, name;
        words >> order >> name;
        name = decoded(name);
        if (order == "lock") {
            keep(name, lockstep::mutex{client_, name, options_}.acquire());
        } else if (order == "want") {
            waiting_.emplace_back([this, name](std::stop_token const& stop) { want(name, stop); });
        } else if (order == "unlock") {
            std::lock_guard const guard{mutex_};
            held_.erase(name);
        } else if (order == "permits") {
            std::int64_t permits = 0, taken = 0;
            words >> permits >> taken;
            auto semaphore = lockstep::counting_semaphore::create(client_, name, permits);
            keep(name, semaphore.acquire(taken));
        } else if (order == "semaphore") {
            std::int64_t permits = 0, lease_ttl = 0;
            words >> permits >> lease_ttl;
            lockstep::semaphore_options const options{.lease_ttl = milliseconds{lease_ttl}};
            semaphores_.push_back(lockstep::counting_semaphore::create(client_, name, permits, options));
        } else if (order == "lead") {
            std::string id;
            words >> id;
            leads_.insert_or_assign(name, lockstep::election{client_, name, {.id = id}}.campaign());
        } else if (order == "resign") {
            leads_.at(name).resign();
        } else if (order == "push") {
            std::string item;
            words >> item;
            lockstep::queue<std::string>{client_, name}.enqueue(item);
        } else if (order == "many") {
            int count = 0;
            words >> count;
            for (int i = 0; i < count; ++i) take(numbered(name, i));
        } else if (order == "churn") {
            int count = 0, rate = 0;
            words >> count >> rate;
            waiting_.emplace_back(
                [this, name, count, rate](std::stop_token const& stop) { churn(name, count, rate, stop); });
        } else {
            throw std::runtime_error{"there is no order " + order};
        }
    }

private:
    static std::string numbered(std::string const& prefix, int number) {
        char digits[16];
        std::snprintf(digits, sizeof digits, "%05d", number);
        return prefix + digits;
    }
    void keep(std::string const& name, lockstep::lease lease) {
        std::lock_guard const guard{mutex_};
        held_.insert_or_assign(name, std::move(lease));
    }
    void take(std::string const& name) { keep(name, lockstep::mutex{client_, name, options_}.acquire()); }
    void want(std::string const& name, std::stop_token const& stop) {
        try {
            keep(name, lockstep::mutex{client_, name, options_}.acquire(stop));
        } catch (std::exception const&) {  // told to end, or it was taken from us
        }
    }
    void churn(std::string const& prefix, int count, int rate, std::stop_token const& stop) {
        auto next = std::chrono::steady_clock::now();
        for (int i = 0; !stop.stop_requested(); i = (i + 7) % count) {
            auto const name = numbered(prefix, i);
            {
                std::lock_guard const guard{mutex_};
                held_.erase(name);
            }
            take(name);
            next += std::chrono::microseconds{1'000'000 / rate};
            std::this_thread::sleep_until(next);
        }
    }

    lockstep::client client_;
    lockstep::lease_options options_;
    std::mutex mutex_;
    std::map<std::string, lockstep::lease> held_;
    std::map<std::string, lockstep::leadership> leads_;
    std::vector<lockstep::counting_semaphore> semaphores_;
    std::vector<std::jthread> waiting_;
};

}  // namespace

int main(int count, char** arguments) try {
    if (count < 3) return 2;
    puppet obedient{arguments[1], arguments[2], milliseconds{count > 3 ? std::stoi(arguments[3]) : 10'000}};
    lockstep::test::answer_lines([&](std::string const& line) {
        obedient.obey(line);
        return "ok";
    });
    return 0;
} catch (std::exception const& failure) {
    std::cout << "failed: " << failure.what() << std::endl;
    return 1;
}
