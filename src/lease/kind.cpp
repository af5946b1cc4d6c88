#include "lease/kind.hpp"

#include "scripts/all.hpp"

namespace lockstep::engine {
namespace {

constexpr kind pool(std::string_view word) noexcept {
    return {.word = word,
            .acquire = scripts::pool_acquire,
            .claim = scripts::pool_claim,
            .renew = scripts::pool_renew,
            .release = scripts::pool_release,
            .adopt = scripts::pool_adopt,
            .change = &scripts::pool_change,
            .evict = scripts::pool_evict,
            .is_pool = true};
}

}  // namespace

kind const lock_kind{.word = "lock",
                     .acquire = scripts::lock_acquire,
                     .claim = scripts::lock_claim,
                     .renew = scripts::lock_renew,
                     .release = scripts::lock_release,
                     .adopt = scripts::lock_adopt,
                     .change = nullptr,
                     .evict = scripts::lock_evict,
                     .is_pool = false};
kind const recursive_kind = pool("recursive");
kind const shared_kind = pool("shared");
kind const semaphore_kind = pool("semaphore");
kind const event_kind = pool("event");
kind const election_kind{.word = "election",
                         .acquire = scripts::election_acquire,
                         .claim = scripts::election_claim,
                         .renew = scripts::election_renew,
                         .release = scripts::election_release,
                         .adopt = scripts::lock_adopt,
                         .change = nullptr,
                         .evict = scripts::election_evict,
                         .is_pool = false,
                         .is_election = true};

std::string_view use_of(kind const& what, std::int64_t amount) noexcept {
    // By its word: the address of another kind would link a program with all its scripts.
    if (what.word == "shared") return amount == 1 ? "reader" : "writer";
    if (what.word == "semaphore") return amount == 0 ? "creation" : "permits";
    if (what.word == "election") return "leader";
    return what.word == "event" ? "signal" : "owner";
}

kind const* find_kind(std::string_view word) noexcept {
    for (auto const* const one : {&lock_kind, &recursive_kind, &shared_kind, &semaphore_kind, &event_kind, &election_kind}) {
        if (one->word == word) return one;
    }
    return nullptr;
}

}  // namespace lockstep::engine
