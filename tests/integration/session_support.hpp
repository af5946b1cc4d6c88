// What a hash remembers of the sessions that counted something in it (src/scripts/include/once.lua).
#pragma once

#include <map>
#include <set>
#include <string>

namespace lockstep::test {

inline int sessions_in(std::map<std::string, std::string> const& fields) {
    int count = 0;
    for (auto const& [field, value] : fields) count += field[0] == 'a' && field.size() > 1 ? 1 : 0;
    return count;
}

/// Whether each session has one number, and there are no others; what is wrong, or "".
inline std::string session_damage(std::map<std::string, std::string> const& fields) {
    if (!fields.contains("rl")) return sessions_in(fields) == 0 ? "" : "sessions without numbers";
    std::set<std::string> named;
    for (auto at = std::stoll(fields.at("rf")); at <= std::stoll(fields.at("rl")); ++at) {
        auto const found = fields.find("r" + std::to_string(at));
        if (found == fields.end()) return "no session has number " + std::to_string(at);
        if (!fields.contains("a" + found->second)) return found->second + " is not known";
        if (!named.insert(found->second).second) return found->second + " has two numbers";
    }
    int numbers = 0;
    for (auto const& [field, value] : fields) numbers += field[0] == 'r' && field != "rf" && field != "rl" && field != "rt" ? 1 : 0;
    if (numbers != static_cast<int>(named.size())) return std::to_string(numbers) + " numbers";
    if (sessions_in(fields) != numbers) return std::to_string(sessions_in(fields)) + " sessions";
    return "";
}

}  // namespace lockstep::test
