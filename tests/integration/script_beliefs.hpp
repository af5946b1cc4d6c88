// Until when the clients of a simulation believe that they hold what was granted to them, in the server's time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace lockstep::test {

class script_beliefs {
public:
    void holds_until(std::string const& hold, std::int64_t end) {
        if (!ended_.contains(hold)) ends_[hold] = end;
    }
    // What is sent may shorten it.
    void ends_by(std::string const& hold, std::int64_t end) {
        if (auto const found = ends_.find(hold); found != ends_.end()) found->second = std::min(found->second, end);
    }
    // It was given back or lost, and nothing that is answered later brings it back.
    void has_ended(std::string const& hold) {
        ends_.erase(hold);
        ended_.insert(hold);
    }
    // The server's clock was set back: what was promised ends earlier by it. Set forward, it ends promises that nobody can keep.
    void clock_stepped(std::int64_t by) {
        if (by >= 0) return by > 0 ? ends_.clear() : void();
        for (auto& [hold, end] : ends_) end += by;
    }
    // Somebody else who believes to have it, or "".
    std::string holder_besides(std::string const& hold, std::int64_t now) const {
        auto const found = std::ranges::find_if(ends_, [&](auto const& one) { return one.first != hold && one.second > now; });
        return found == ends_.end() ? "" : found->first;
    }

private:
    std::map<std::string, std::int64_t> ends_;
    std::set<std::string> ended_;
};

}  // namespace lockstep::test
