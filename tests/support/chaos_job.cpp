#include "chaos_job.hpp"

#include <algorithm>

namespace lockstep::chaos {
namespace {

using namespace std::chrono_literals;

std::uint64_t number_in(std::string_view text) { return text.empty() ? 0 : std::stoull(std::string{text}); }

}  // namespace

std::string job_plan::value() const {
    auto text = name_of(number);
    if (is_task) text += ":m";
    if (throws > 0) text += ":x" + std::to_string(throws);
    if (ends == fate::throws) text += ":d";
    if (ends == fate::rejects) text += ":r";
    if (has_little_time) text += ":t";
    if (!single.empty()) text += ":s" + single + when_running;
    for (std::size_t i = 0; i != parents.size(); ++i) text += (i == 0 ? ":p" : ",") + std::to_string(parents[i]);
    if (!parents.empty()) text += on_parent_failure;
    if (!key.empty()) text += "@" + key;
    return text;
}

job_plan job_plan::of(std::string_view value) {
    job_plan made;
    if (auto const at = value.find('@'); at != std::string_view::npos) {
        made.key = value.substr(at + 1);
        value = value.substr(0, at);
    }
    auto const take = [&value] {
        auto const end = std::min(value.find(':'), value.size());
        auto const part = value.substr(0, end);
        value.remove_prefix(std::min(end + 1, value.size()));
        return part;
    };
    auto const name = take();
    auto const sign = std::min(name.find('#'), name.size());
    made.who = name.substr(0, sign);
    made.number = number_in(name.substr(std::min(sign + 1, name.size())));
    while (!value.empty()) {
        auto part = take();
        auto const letter = part.empty() ? ' ' : part.front();
        part.remove_prefix(part.empty() ? 0 : 1);
        if (letter == 'm') made.is_task = true;
        if (letter == 'x') made.throws = static_cast<std::int32_t>(number_in(part));
        if (letter == 'd') made.ends = fate::throws;
        if (letter == 'r') made.ends = fate::rejects;
        if (letter == 't') made.has_little_time = true;
        if (part.empty() || (letter != 's' && letter != 'p')) continue;
        (letter == 's' ? made.when_running : made.on_parent_failure) = part.back();
        part.remove_suffix(1);
        if (letter == 's') made.single = part;
        while (letter == 'p' && !part.empty()) {
            auto const end = std::min(part.find(','), part.size());
            made.parents.push_back(number_in(part.substr(0, end)));
            part.remove_prefix(std::min(end + 1, part.size()));
        }
    }
    return made;
}

job_options job_plan::options() const {
    job_options how{.attempts = has_little_time ? 1'000'000 : ends == fate::returns ? throws + 1 : 2, .backoff = 10ms, .max_backoff = 60ms};
    if (has_little_time) how.timeout = 60ms;
    how.key = key;
    how.single = single;
    how.when_running = when_running == 'k' ? single_policy::skip : when_running == 'r' ? single_policy::replace : single_policy::queue;
    how.on_parent_failure = on_parent_failure == 's' ? parent_failure::skip : on_parent_failure == 'g' ? parent_failure::go_on : parent_failure::fail;
    return how;
}

}  // namespace lockstep::chaos
