// Is what several programs did with one shared value linearizable? Versions say in which order writes took effect, so no search is needed:
// every operation has the version that it wrote or saw, and one that ended before another began must not have a later one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace lockstep::test {

struct register_operation {
    enum class kind {
        read,     // saw `value` at `version`; 0: nothing
        write,    // made `version`
        swap,     // made `version` where `expected` was
        refused,  // `expected` was not there
        unknown,  // a write of `value` without an answer: it may have happened at any time after `begin`, or not
    };
    kind what = kind::read;
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::uint64_t version = 0;
    std::uint64_t expected = 0;
    std::string value{};
};

// What is wrong with it; empty: nothing.
inline std::string check_register(std::vector<register_operation> history) {
    using enum register_operation::kind;
    std::map<std::uint64_t, register_operation const*> writes;
    std::set<std::string> maybe;
    auto const complain = [](char const* what, register_operation const& about) {
        std::ostringstream text;
        text << what << ": version " << about.version << ", expected " << about.expected << ", value '" << about.value << "', from " << about.begin
             << " to " << about.end;
        return text.str();
    };
    for (auto const& one : history) {
        if (one.what == unknown) maybe.insert(one.value);
        if (one.what != write && one.what != swap) continue;
        if (!writes.emplace(one.version, &one).second) return complain("two writes made this version", one);
    }
    std::set<std::uint64_t> versions{0};  // all that were ever there, also by writes without an answer that somebody saw
    for (auto const& one : history) {
        if (one.what == refused || one.what == unknown) continue;
        versions.insert(one.version);
        if (one.what != read || one.version == 0) continue;
        auto const made = writes.find(one.version);
        if (made == writes.end()) {
            if (!maybe.contains(one.value)) return complain("a read saw what nobody wrote", one);
        } else if (made->second->value != one.value) {
            return complain("a read saw another value than was written with this version", one);
        } else if (made->second->begin > one.end) {
            return complain("a read saw what was not written yet", one);
        }
    }
    for (auto const& one : history) {
        if (one.what != swap) continue;
        auto const before = *std::prev(versions.find(one.version));
        if (before > one.expected) return complain("a swap took the place of a version that it did not expect", one);
    }

    // In the order in which they began, against the largest version of those that had ended.
    std::erase_if(history, [](auto const& one) { return one.what == refused || one.what == unknown; });
    auto by_end = history;
    std::sort(history.begin(), history.end(), [](auto const& a, auto const& b) { return a.begin < b.begin; });
    std::sort(by_end.begin(), by_end.end(), [](auto const& a, auto const& b) { return a.end < b.end; });
    std::uint64_t ended = 0;
    auto next = by_end.begin();
    for (auto const& one : history) {
        for (; next != by_end.end() && next->end < one.begin; ++next) ended = std::max(ended, next->version);
        if (one.what == read ? one.version < ended : one.version <= ended) return complain("it came after a later version was known", one);
    }
    return {};
}

}  // namespace lockstep::test
