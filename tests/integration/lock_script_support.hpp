// The lock's scripts, called one at a time on a server of the test's own, whose clock the test moves.
#pragma once

#include "script_support.hpp"

namespace lockstep::test {

using lock_answer = script_answer;

class lock_scripts : public script_bench {
public:
    struct options {
        std::int64_t ttl = lock_scripts::ttl;
        std::int64_t deadline = ever;
        std::int64_t fences = 1;
        std::int64_t waiters = 100'000;
    };

    lock_answer acquire(std::string const& hold) { return acquire(hold, options{}); }
    lock_answer acquire(std::string const& hold, options const& o) {
        return parse(
            run(scripts::lock_acquire, {hold, text(o.ttl), text(o.deadline), text(o.fences), text(o.waiters), rules}),
            o.ttl, o.fences);
    }
    lock_answer try_acquire(std::string const& hold) { return acquire(hold, {.waiters = 0}); }
    lock_answer claim(std::string const& hold, std::int64_t fences = 1) {
        return parse(run(scripts::lock_claim, {hold, text(ttl), text(fences), rules}));
    }
    lock_answer renew(std::string const& hold, std::int64_t length = ttl, std::int64_t with_number = 0, std::int64_t deadline = ever) {
        return parse(run(scripts::lock_renew, {hold, text(length), rules, number(with_number), text(deadline)}));
    }
    lock_answer release(std::string const& hold) { return parse(run(scripts::lock_release, {hold, rules})); }
    lock_answer release_leaving(std::string const& hold) {
        return parse(run(scripts::lock_release, {hold, rules, "1"}));
    }
    lock_answer adopt(std::string const& token, std::string const& hold, std::int64_t deadline = ever) {
        return parse(run(scripts::lock_adopt, {token, hold, text(ttl), rules, text(deadline)}));
    }

    // What is there of an owner and of waiters. A lock that nobody wants has none.
    std::string residue() { return fields_with("opsedrhlzmqw"); }
};

}  // namespace lockstep::test
