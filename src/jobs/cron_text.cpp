#include "jobs/cron_text.hpp"

#include "base/words.hpp"
#include "jobs/job_text.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep {

namespace {
constexpr std::array<std::string_view, 3> policy_names{"skip", "once", "all"};
}  // namespace

std::string_view to_string(missed_runs policy) noexcept { return policy_names[static_cast<std::size_t>(policy)]; }

namespace detail {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr std::size_t most_runs = 1'000;  // of one schedule in one turn
constexpr std::size_t most_known = 20'000;
constexpr std::size_t longest_id = 128;
constexpr auto longest_window = std::chrono::hours{24 * 366 * 10};

[[noreturn]] void not_understood() { throw protocol_error("a schedule of jobs at the server is written in a way that is not understood"); }
[[noreturn]] void refuse(std::string_view id, std::string const& what) { throw invalid_argument_error(fmt::format("schedule '{}': {}", id, what)); }

std::string_view cut(std::string_view& rest, char by) {
    auto const at = rest.find(by);
    if (at == std::string_view::npos) not_understood();
    auto const first = rest.substr(0, at);
    rest = rest.substr(at + 1);
    return first;
}

std::int64_t number(std::string_view text) {
    auto const found = base::number_in<std::int64_t>(text);
    if (!found) not_understood();
    return *found;
}

missed_runs policy_of(std::string_view text) {
    auto const at = std::find(policy_names.begin(), policy_names.end(), text);
    if (at == policy_names.end()) not_understood();
    return static_cast<missed_runs>(at - policy_names.begin());
}

}  // namespace

void check_cron_id(std::string_view id) {
    auto const is_allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_' || c == ':' || c == '/';
    };
    if (!id.empty() && id.size() <= longest_id && std::all_of(id.begin(), id.end(), is_allowed)) return;
    throw invalid_argument_error(fmt::format("the id of a schedule is 1 to {} letters, digits and . - _ : /, not '{}'", longest_id, id.substr(0, 100)));
}

cron_head read_cron_head(std::string_view line) {
    cron_head found;
    found.version = number(cut(line, ' '));
    found.type = cut(line, ' ');
    found.missed = policy_of(cut(line, ' '));
    found.late = milliseconds{number(cut(line, ' '))};
    cut(line, ' ');  // priority
    cut(line, ' ');  // window
    auto size = cut(line, ' ');
    if (!size.empty() && size.back() >= 'a') size.remove_suffix(1);  // it is that of a single name, and this the rule
    found.key_size = number(size);
    found.zone = cut(line, '\t');
    found.expression = line;
    return found;
}

std::string write_cron(std::string_view id, std::string_view type, std::string_view payload, cron_options const& how) {
    check_cron_id(id);
    check_job_type(type);
    auto const& job = how.job;
    if (how.missed > missed_runs::all) refuse(id, "missed must be skip, once or all");
    if (how.late < 1s || how.late > 24h * 30) refuse(id, fmt::format("late must be 1 s to 30 days, not {} ms", how.late.count()));
    if (job.delay != 0ms || job.at != system_time{}) refuse(id, "a job of a schedule has no delay and no time of its own: the expression says when");
    if (job.priority < -1'000'000 || job.priority > 1'000'000) refuse(id, fmt::format("priority must be -1,000,000 to 1,000,000, not {}", job.priority));
    if (job.key.size() > 512) refuse(id, fmt::format("a key must be 512 bytes at most, not {}", job.key.size()));
    if (job.key_window < 0ms || job.key_window > longest_window) refuse(id, "key_window must be 0 to 10 years");
    if (!job.batch.empty()) refuse(id, "a job of a schedule is of no batch: that would never end");
    auto const single = write_single(job);
    auto const name = single.empty() ? job.key : job.single;
    auto const window = job.key.empty() ? 0 : job.key_window.count();
    return fmt::format("{} {} {} {} {} {}{} {}\t{}\n{}\n{}{}", type, to_string(how.missed), how.late.count(), job.priority, window, name.size(),
                       single.substr(0, 1), how.zone, how.expression, write_terms(job), name, payload);
}

cron_info read_cron(std::string_view id, std::int64_t due_ms, std::string_view spec, std::string_view last) {
    auto const head = read_cron_head(cut(spec, '\n'));
    cut(spec, '\n');  // options
    if (static_cast<std::size_t>(head.key_size) > spec.size()) not_understood();
    cron_info found;
    found.id = id;
    found.type = head.type;
    found.expression = head.expression;
    found.zone = head.zone;
    found.missed = head.missed;
    found.payload = spec.substr(static_cast<std::size_t>(head.key_size));
    if (due_ms != 0) found.next = time_of_ms(due_ms);
    if (!last.empty()) {
        found.last = time_of_ms(number(cut(last, ' ')));
        found.last_job = fmt::format("{}/{}", head.type, last);
    }
    return found;
}

cron_turn reckon(cron_schedule const& when, missed_runs missed, milliseconds late, system_time due, system_time now) {
    auto const limit = now - late;  // before that is missed
    cron_turn made;
    auto next = due;
    if (missed == missed_runs::all) {
        for (; next < limit && made.runs.size() != most_runs; next = when.next(next)) made.runs.push_back(next);
    }
    if (next < limit) next = when.next(limit - 1ms);
    for (; next <= now && made.runs.size() != most_runs; next = when.next(next)) made.runs.push_back(next);
    if (missed == missed_runs::once && due < limit && made.runs.empty()) made.runs.push_back(due);
    made.next = next;
    return made;
}

std::shared_ptr<cron_schedule const> cron_shelf::find(std::string_view expression, std::string_view zone) {
    auto const label = fmt::format("{}\t{}", zone, expression);
    if (auto const at = known_.find(label); at != known_.end()) return at->second;
    auto made = std::make_shared<cron_schedule const>(expression, zone);
    if (known_.size() == most_known) known_.clear();
    known_.emplace(label, made);
    return made;
}

}  // namespace detail
}  // namespace lockstep
