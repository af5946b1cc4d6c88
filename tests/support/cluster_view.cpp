#include "cluster_view.hpp"

#include <algorithm>
#include <sstream>
#include <stdexcept>

namespace lockstep::test {

bool cluster::view::member::has(int slot) const {
    return std::any_of(slots.begin(), slots.end(),
                       [slot](auto const& range) { return range.first <= slot && slot <= range.second; });
}

// <id> <ip:port@bus> <flags> <master> <ping-sent> <pong-recv> <config-epoch> <link-state> <slot> <slot> ...
cluster::view::view(std::string const& cluster_nodes) {
    std::istringstream lines{cluster_nodes};
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words{line};
        member one;
        std::string ignored;
        std::string flags;
        words >> one.id >> ignored >> flags >> one.master_id >> ignored >> ignored >> one.epoch >> ignored;
        one.self = flags.find("myself") != std::string::npos;
        one.master = flags.find("master") != std::string::npos;
        one.failed = flags.find("fail") != std::string::npos;
        for (std::string word; words >> word;) {
            if (word.front() == '[') continue;  // on the move
            auto const dash = word.find('-');
            auto const first = std::stoi(word);
            one.slots.emplace_back(first, dash == std::string::npos ? first : std::stoi(word.substr(dash + 1)));
        }
        members.push_back(std::move(one));
    }
}

cluster::view::member const& cluster::view::myself() const {
    auto const found = std::find_if(members.begin(), members.end(), [](auto const& one) { return one.self; });
    if (found == members.end()) throw std::runtime_error{"a node that does not know itself"};
    return *found;
}

cluster::view::member const* cluster::view::find(std::string const& id) const {
    auto const found = std::find_if(members.begin(), members.end(), [&](auto const& one) { return one.id == id; });
    return found == members.end() ? nullptr : &*found;
}

std::string cluster::view::opinion() const {
    std::vector<std::string> lines;
    for (auto const& one : members) {
        auto line = one.id + (one.failed ? " failed" : "") + (one.master ? " serves" : " follows " + one.master_id);
        for (auto const& [first, last] : one.slots) line += " " + std::to_string(first) + "-" + std::to_string(last);
        lines.push_back(line + "\n");
    }
    std::sort(lines.begin(), lines.end());
    std::string text;
    for (auto const& line : lines) text += line;
    return text;
}

}  // namespace lockstep::test
