#include "observe/notes.hpp"

#include <fmt/format.h>

namespace lockstep::observe {

void notes::add(std::string_view key, std::string_view problem) {
    std::lock_guard const guard{mutex_};
    if (problems_.size() >= most && !problems_.contains(key)) {
        others_ = true;
        return;
    }
    problems_.try_emplace(std::string{key}, problem);
}

std::vector<std::string> notes::list() const {
    std::lock_guard const guard{mutex_};
    std::vector<std::string> lines;
    for (auto const& [key, problem] : problems_) lines.push_back(fmt::format("{}: {}", key, problem));
    if (others_) lines.emplace_back("and other keys that can't be read");
    return lines;
}

}  // namespace lockstep::observe
