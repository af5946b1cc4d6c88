#include "jobs/job_text.hpp"

#include "base/random.hpp"
#include "base/stored_time.hpp"
#include "base/words.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

namespace lockstep {

namespace {
constexpr std::array<std::string_view, 7> state_names{"unknown", "waiting", "blocked", "running", "completed", "failed", "cancelled"};
}  // namespace

std::string_view to_string(job_state state) noexcept { return state_names[static_cast<std::size_t>(state)]; }

namespace detail {
namespace {

using std::chrono::milliseconds;
constexpr auto longest_delay = std::chrono::hours{24 * 366 * 10};

using system_time = std::chrono::system_clock::time_point;

using base::cut;

[[noreturn]] void not_understood() { throw protocol_error("a job at the server is written in a way that is not understood"); }

template <class T = std::int64_t>
T number(std::string_view text) {
    auto const found = base::number_in<T>(text);
    if (!found) not_understood();
    return *found;
}

/// As Lua wrote it, which may be 1.7e+12.
system_time time_of(std::string_view ms) {
    if (ms.empty()) return {};
    auto const found = number<double>(ms);
    if (!(std::abs(found) <= 9e18)) not_understood();
    return base::time_of_ms(static_cast<std::int64_t>(found));
}

std::vector<job_failure> read_trail(std::string_view text) {
    std::vector<job_failure> all;
    while (!text.empty()) {
        auto line = cut(text, '\n');
        auto head = cut(line, '\t');
        auto const when = cut(head, ' ');
        auto const delivery = cut(head, ' ');
        if (when.empty() || !std::all_of(when.begin(), when.end(), [](char c) { return c >= '0' && c <= '9'; })) continue;  // cut off in front
        all.push_back({time_of(when), number<std::int32_t>(delivery), std::string{head}, std::string{line}});
    }
    return all;
}

bool is_of_type(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
}

/// In order, each once.
std::set<std::string_view> read_tags(std::string_view text) {
    std::set<std::string_view> all;
    while (!text.empty()) {
        auto const tag = cut(text, ' ');
        if (tag.empty()) continue;
        check_tag(tag);
        all.insert(tag);
    }
    if (all.size() > 16) throw invalid_argument_error(fmt::format("a job: 16 tags at most, not {}", all.size()));
    return all;
}

}  // namespace

void check_job_type(std::string_view type) {
    if (!type.empty() && type.size() <= 64 && std::all_of(type.begin(), type.end(), is_of_type)) return;
    throw invalid_argument_error(fmt::format("the type of a job is 1 to 64 letters, digits, dots, dashes and underscores, not '{}'", type.substr(0, 100)));
}

job_name read_job_name(std::string_view id) {
    auto const at = id.find('/');
    auto const rest = at == std::string_view::npos ? std::string_view{} : id.substr(at + 1);
    auto const is_allowed = [](char c) { return (c >= '0' && c <= '9') || c == '-' || (c >= 'a' && c <= 'z'); };
    if (rest.empty() || rest.size() > 40 || !std::all_of(rest.begin(), rest.end(), is_allowed)) {
        throw invalid_argument_error(fmt::format("the id of a job is <type>/<number>, as schedule gave it, not '{}'", id.substr(0, 100)));
    }
    check_job_type(id.substr(0, at));
    return {std::string{id.substr(0, at)}, std::string{rest}};
}

std::string keep_words(job_worker_options const& how) {
    auto const word = [](std::optional<std::int64_t> number) { return number ? std::to_string(*number) : std::string{"-"}; };
    auto const ms = [](std::optional<milliseconds> time) { return time ? std::optional<std::int64_t>{time->count()} : std::nullopt; };
    return fmt::format("{} {} {} {}", word(how.keep_completed), word(ms(how.completed_retention)), word(how.keep_failed), word(ms(how.failed_retention)));
}

milliseconds job_terms::pause(std::int32_t failures) const {
    auto const longest = static_cast<double>(max_backoff.count());
    auto const whole = std::min(longest, static_cast<double>(backoff.count()) * std::pow(factor, std::max(failures - 1, 0)));
    auto const share = static_cast<double>(base::random_below(1'000'001)) / 1e6;
    return milliseconds{static_cast<std::int64_t>(whole * (1 - jitter * share))};
}

std::string write_terms(job_options const& how) {
    auto const refuse = [](std::string const& what) { throw invalid_argument_error("a job: " + what); };
    if (how.attempts < 1 || how.attempts > 1'000'000) refuse(fmt::format("attempts must be 1 to 1,000,000, not {}", how.attempts));
    if (how.backoff.count() < 0 || how.max_backoff.count() < 0) refuse("a backoff is 0 or more");
    if (!(how.backoff_factor >= 1 && how.backoff_factor <= 100)) refuse(fmt::format("backoff_factor must be 1 to 100, not {}", how.backoff_factor));
    if (!(how.jitter >= 0 && how.jitter <= 1)) refuse(fmt::format("jitter must be 0 to 1, not {}", how.jitter));
    if (how.timeout.count() < 0) refuse("a timeout is 0 or more");
    if (std::max({how.timeout, how.backoff, how.max_backoff}) > std::chrono::hours{24 * 366 * 10}) refuse("timeout and backoff are 10 years at most");
    job_options const usual;
    bool const is_usual = how.attempts == usual.attempts && how.backoff == usual.backoff && how.max_backoff == usual.max_backoff &&
                          how.backoff_factor == usual.backoff_factor && how.jitter == usual.jitter && how.timeout == usual.timeout;
    auto text = is_usual ? std::string{}
                         : fmt::format("{} {} {} {} {} {}", how.attempts, how.backoff.count(), how.max_backoff.count(), how.backoff_factor, how.jitter,
                                       how.timeout.count());
    if (auto const tags = read_tags(how.tags); !tags.empty()) text += fmt::format("{}tags={}", text.empty() ? "" : " ", fmt::join(tags, ","));
    return text;
}

void check_tag(std::string_view tag) {
    auto const is_allowed = [](char c) { return is_of_type(c) || c == ':'; };
    if (!tag.empty() && tag.size() <= 64 && std::all_of(tag.begin(), tag.end(), is_allowed)) return;
    throw invalid_argument_error(fmt::format("the tag of a job is 1 to 64 letters, digits and any of . _ : -, not '{}'", tag.substr(0, 100)));
}

void check_place(milliseconds delay, std::int32_t priority) {
    auto const refuse = [](std::string const& what) { throw invalid_argument_error("a job: " + what); };
    if (delay.count() < 0 || delay > longest_delay) refuse(fmt::format("delay must be 0 to 10 years, not {} ms", delay.count()));
    if (priority < -1'000'000 || priority > 1'000'000) refuse(fmt::format("priority must be -1,000,000 to 1,000,000, not {}", priority));
}

std::string write_place(job_options const& how) {
    check_place(how.delay, how.priority);
    auto const time = std::chrono::duration_cast<milliseconds>(how.at.time_since_epoch()).count();
    auto const when = how.at == system_time{} ? std::to_string(how.delay.count()) : fmt::format("@{}", std::max<std::int64_t>(time, 0));
    constexpr std::string_view policies = "fsg";
    return fmt::format("{} {} {}", when, how.priority, policies[static_cast<std::size_t>(how.on_parent_failure)]);
}

void check_batch(std::string_view id) {
    if (!id.empty() && id.size() <= 512) return;
    throw invalid_argument_error(fmt::format("the id of a batch must be 1 to 512 bytes, not {}", id.size()));
}

std::string write_single(job_options const& how) {
    if (how.single.empty()) return {};
    if (how.single.size() > 512) throw invalid_argument_error(fmt::format("a job: a single name must be 512 bytes at most, not {}", how.single.size()));
    if (!how.key.empty()) throw invalid_argument_error("a job: it has a key or a single name, not both");
    constexpr std::string_view rules = "kqr";
    return rules[static_cast<std::size_t>(how.when_running)] + std::string{how.single};
}

job_terms read_terms(std::string_view text) {
    job_terms found;
    if (text.empty()) return found;
    found.attempts = number<std::int32_t>(cut(text, ' '));
    found.backoff = milliseconds{number(cut(text, ' '))};
    found.max_backoff = milliseconds{number(cut(text, ' '))};
    found.factor = number<double>(cut(text, ' '));
    found.jitter = number<double>(cut(text, ' '));
    found.timeout = milliseconds{number(cut(text, ' '))};
    // What write_terms allows; with anything else a pause could be negative, or no number.
    auto const is_delay = [](milliseconds time) { return time.count() >= 0 && time <= longest_delay; };
    bool const is_allowed = found.attempts >= 1 && is_delay(found.backoff) && is_delay(found.max_backoff) && found.factor >= 1 && found.factor <= 100 &&
                            found.jitter >= 0 && found.jitter <= 1 && is_delay(found.timeout);
    if (!is_allowed) not_understood();
    return found;
}

job_record read_record(std::string_view text) {
    auto head = cut(text, '\n');
    job_record found;
    found.is_cancelled = cut(head, ' ') == "x";
    cut(head, ' ');  // generation
    found.created = time_of(cut(head, ' '));
    auto const size = number<std::size_t>(cut(head, ' '));
    cut(head, ' ');  // window
    if (size > text.size()) not_understood();
    auto terms = cut(head, '\t');
    if (auto const at = terms.find("cron="); at != std::string_view::npos) {  // 'cron=<due_ms>,<id>' is the last of them
        auto from = terms.substr(at + 5);
        found.due = time_of(cut(from, ','));
        found.cron = from;
        terms = terms.substr(0, at == 0 ? 0 : at - 1);
    }
    if (auto const at = terms.find("tags="); at != std::string_view::npos) {
        auto tags = terms.substr(at + 5);
        while (!tags.empty()) found.tags.emplace_back(cut(tags, ','));
        terms = terms.substr(0, at == 0 ? 0 : at - 1);
    }
    found.terms = read_terms(terms);
    auto parents = cut(head, '\t');
    while (!parents.empty()) found.parents.emplace_back(cut(parents, ' '));
    found.is_single = cut(head, '\t') == "s";
    found.payload = text.substr(size);
    return found;
}

job_delivery read_delivery(std::string_view text) {
    auto head = cut(text, '\n');
    cut(head, ' ');  // generation
    return {number<std::int32_t>(head), read_record(text)};
}

job_state read_state(std::string_view text) {
    auto const at = std::find(state_names.begin(), state_names.end(), text);
    if (at == state_names.end()) not_understood();
    return static_cast<job_state>(at - state_names.begin());
}

std::optional<job_outcome> read_end(std::string_view text) {
    auto rest = text;
    auto head = cut(rest, '\n');
    auto const state = cut(head, ' ');
    if (head.empty()) return std::nullopt;
    auto const size = number<std::size_t>(head);
    if (size > rest.size()) not_understood();
    return job_outcome{.state = read_state(state), .result = std::string{rest.substr(0, size)}, .reason = std::string{rest.substr(size)}};
}

std::string last_reason(std::string_view trail) {
    auto all = read_trail(trail);
    return all.empty() ? std::string{} : std::move(all.back().reason);
}

job_info read_job(std::string_view type, std::string_view id, reply_view row) {
    if (row.size() != 9) not_understood();
    job_info found;
    found.id = fmt::format("{}/{}", type, id);
    found.type = type;
    found.state = read_state(row[0].text());
    if (found.state == job_state::unknown) return found;
    found.since = time_of(row[1].text());
    auto const record = read_record(row[2].text());
    found.created = record.created;
    found.payload = record.payload;
    found.attempts = record.terms.attempts;
    found.parents = record.parents;
    found.tags = record.tags;
    found.cron = record.cron;
    found.due = record.due;
    auto running = row[3].text();
    cut(running, ' ');
    cut(running, ' ');
    found.worker = running;
    found.result = row[4].text();
    found.progress = row[5].text();
    found.failures = read_trail(row[6].text());
    found.is_cut = row[7].integer() == 1;
    if (!row[8].is_text()) found.delayed_until = base::time_of_ms(row[8].integer());
    return found;
}

flow_job read_flow_job(reply_view row) {
    if (row.size() != 4) not_understood();
    flow_job found{.id = std::string{row[0].text()}, .state = read_state(row[1].text()), .since = time_of(row[2].text())};
    auto parents = row[3].text();
    while (!parents.empty()) found.parents.emplace_back(cut(parents, ' '));
    return found;
}

}  // namespace detail
}  // namespace lockstep
