#include "dashboard/job_pages.hpp"

#include "common/job_json.hpp"
#include "dashboard/answers.hpp"
#include "dashboard/text.hpp"

#include <lockstep/error.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace lockstep::dashboard {

namespace {

namespace json = boost::json;

constexpr std::array<std::string_view, 6> pages{"/api/jobs", "/api/jobs/samples", "/api/jobs/list", "/api/jobs/job", "/api/jobs/flow", "/api/jobs/crons"};
constexpr std::array states{job_state::waiting, job_state::blocked, job_state::running, job_state::completed, job_state::failed, job_state::cancelled};
constexpr std::size_t most_listed = 200;
constexpr std::size_t usually_listed = 50;
constexpr std::size_t most_drawn = 200;
constexpr std::size_t most_crons = 500;
constexpr std::size_t line_bytes = 240;    // of a payload in a list
constexpr std::size_t text_bytes = 8'192;  // and alone

struct named_deed {
    std::string_view path;
    queue_deed deed;
};
constexpr std::array queue_deeds{named_deed{"/api/jobs/pause", queue_deed::pause}, named_deed{"/api/jobs/resume", queue_deed::resume},
                                 named_deed{"/api/jobs/retry-all", queue_deed::retry}, named_deed{"/api/jobs/cancel-all", queue_deed::cancel}};

// Empty when it was not said.
std::string said(std::string_view query, std::string_view key) {
    auto value = in_query(query, key);
    if (value) return std::move(*value);
    bool const is_there = ('&' + std::string{query}).find('&' + std::string{key} + '=') != std::string::npos;
    if (is_there) throw invalid_argument_error{std::string{key} + " is not percent-encoded as it should be"};
    return {};
}

std::string must_say(std::string_view query, std::string_view key) {
    auto value = said(query, key);
    if (value.empty()) throw invalid_argument_error{"say which: ?name=NAME&id=ID"};
    return value;
}

std::size_t number(std::string_view query, std::string_view key, std::size_t usual, std::size_t least, std::size_t most) {
    auto const text = said(query, key);
    if (text.empty()) return usual;
    std::size_t value = 0;
    auto const read = std::from_chars(text.data(), text.data() + text.size(), value);
    if (read.ec != std::errc{} || read.ptr != text.data() + text.size() || value < least || value > most)
        throw invalid_argument_error{std::string{key} + " is a number of " + std::to_string(least) + " to " + std::to_string(most)};
    return value;
}

job_state state_in(std::string_view text) {
    auto const found = std::ranges::find_if(states, [&](job_state one) { return to_string(one) == text; });
    if (found == states.end()) throw invalid_argument_error{"state is waiting, blocked, running, completed, failed or cancelled"};
    return *found;
}

void put_name(json::object& into, std::string const& name) {
    into["name"] = readable(name);
    if (!is_utf8(name)) into["raw"] = percent_encoded(name);  // what the page asks for it by
}

json::value as_json(std::optional<double> value) {
    if (value) return *value;
    return nullptr;
}

// What may be long is cut, and its length told.
void cut(json::object& of, std::string_view member, std::size_t most) {
    auto* const found = of.if_contains(member);
    if (found == nullptr) return;
    auto const bytes = found->get_string().size();
    if (bytes > most) *found = std::string{beginning(found->get_string(), most)};
    of[std::string{member} + "_bytes"] = bytes;  // last: what was found may lie elsewhere then
}

json::object in_a_list(named_job const& one) {
    auto made = apps::json_of(one.is);
    put_name(made, one.name);
    made.erase("result");
    made.erase("failures");
    made.erase("parents");
    made["tries"] = one.is.failures.size();
    made["linked"] = !one.is.parents.empty();
    if (!one.is.failures.empty()) {
        auto const& last = one.is.failures.back();
        made["reason"] = last.reason;
        if (one.is.worker.empty() && last.worker != "-") made["worker"] = last.worker;  // -: it had none
    }
    for (auto const* const text : {"payload", "progress", "reason"}) cut(made, text, line_bytes);
    return made;
}

response overview(job_desk& desk) {
    auto const now = desk.look();
    json::array queues;
    for (auto const& one : now->queues) {
        auto made = apps::json_of(one.type, one.counts);
        put_name(made, one.name);
        made["completed_per_s"] = as_json(one.completed_per_s);
        made["failed_per_s"] = as_json(one.failed_per_s);
        queues.push_back(std::move(made));
    }
    return as_response(json::object{{"queues", std::move(queues)}, {"left_out", now->left_out}});
}

response samples(job_desk& desk, queue_filter const& which) {
    if (which.name.empty() != which.type.empty()) throw invalid_argument_error{"say both or none: ?name=NAME&type=TYPE"};
    json::array all;
    for (auto const& one : desk.samples(which)) {
        all.push_back(json::object{{"at_ms", one.at_ms}, {"waiting", one.waiting}, {"running", one.running},
                                   {"completed_per_s", as_json(one.completed_per_s)}, {"failed_per_s", as_json(one.failed_per_s)}});
    }
    return as_response(std::move(all));
}

response list(job_desk& desk, std::string_view query) {
    queue_filter const which{said(query, "name"), said(query, "type")};
    auto const state = state_in(said(query, "state"));
    auto const from = number(query, "from", 0, 0, 1'000'000'000);
    auto const count = number(query, "count", usually_listed, 1, most_listed);
    auto const found = desk.list(which, state, from, count);
    json::array jobs;
    for (auto const& one : found.jobs) jobs.push_back(in_a_list(one));
    return as_response(json::object{{"jobs", std::move(jobs)}, {"total", found.total}});
}

response no_such_job() { return refusal(404, "there is no such job, or it ended long ago"); }

response job(job_desk& desk, std::string const& name, std::string const& id) {
    auto const found = desk.find(name, id);
    if (!found) return no_such_job();
    auto made = apps::json_of(*found);
    put_name(made, name);
    if (found->parents.size() > most_drawn) made["parents"] = json::array(found->parents.begin(), found->parents.begin() + most_drawn);
    made["parents_total"] = found->parents.size();
    made["linked"] = !found->parents.empty() || desk.flow_of(name, id, 2).jobs.size() > 1;
    for (auto const* const text : {"payload", "result", "progress"}) cut(made, text, text_bytes);
    return as_response(std::move(made));
}

response flow(job_desk& desk, std::string const& name, std::string const& id) {
    auto const found = desk.flow_of(name, id, most_drawn);
    if (found.jobs.empty()) return no_such_job();
    json::array jobs;
    for (auto const& one : found.jobs) {
        jobs.push_back(json::object{{"id", one.id}, {"state", to_string(one.state)}, {"since_ms", apps::in_ms(one.since)},
                                    {"parents", json::array(one.parents.begin(), one.parents.end())}});
    }
    return as_response(json::object{{"jobs", std::move(jobs)}, {"whole", found.is_whole}});
}

bool has_ended(job_state state) { return state == job_state::completed || state == job_state::failed || state == job_state::cancelled; }
response wrong_state(job_state state) {
    return refusal(400, has_ended(state) ? "one that has ended can't be cancelled" : "one that has not ended can't be run again");
}

// What is meant is a queue, as it is: which jobs are in it then was not seen by anybody.
response done_to_queue(job_desk& desk, queue_deed deed, json::object const& order, std::string const& by) {
    queue_filter const which{dashboard::name_in(order), member(order, "type")};
    if (which.name.empty() || which.type.empty()) return refusal(400, "name and type must say which jobs are meant");
    bool const has_state = deed == queue_deed::retry || deed == queue_deed::cancel;
    auto const state = has_state ? state_in(member(order, "state")) : job_state::unknown;
    if (has_state && has_ended(state) != (deed == queue_deed::retry)) return wrong_state(state);
    auto const count = desk.act(deed, which, state, by, member(order, "reason").substr(0, most_reason));
    return as_response(json::object{{"done", count != 0}, {"count", count}});
}

response crons(job_desk& desk, std::string const& name) {
    auto const all = desk.crons(name);
    json::array shown;
    for (auto const& one : all.crons) {
        if (shown.size() == most_crons) break;
        auto made = apps::json_of(one.is);
        put_name(made, one.name);
        cut(made, "payload", line_bytes);
        shown.push_back(std::move(made));
    }
    return as_response(json::object{{"crons", std::move(shown)}, {"total", all.crons.size()}, {"left_out", all.left_out}});
}

}  // namespace

bool is_job_page(std::string_view path) { return std::ranges::find(pages, path) != pages.end(); }
bool is_job_deed(std::string_view path) {
    return path == "/api/jobs/retry" || path == "/api/jobs/cancel" || std::ranges::find(queue_deeds, path, &named_deed::path) != queue_deeds.end();
}

response job_page_of(job_desk& desk, std::string const& path, std::string const& query) {
    if (path == "/api/jobs") return overview(desk);
    if (path == "/api/jobs/samples") return samples(desk, {said(query, "name"), said(query, "type")});
    if (path == "/api/jobs/list") return list(desk, query);
    if (path == "/api/jobs/crons") return crons(desk, said(query, "name"));
    auto const name = must_say(query, "name");
    auto const id = must_say(query, "id");
    return path == "/api/jobs/flow" ? flow(desk, name, id) : job(desk, name, id);
}

// The job is looked up again: what the page showed may be over. One that ran meanwhile must not be stopped by who saw it wait, nor one that has
// completed be run again by who saw it fail.
response job_deed_of(job_desk& desk, std::string const& path, std::string const& body, std::string const& by) {
    boost::system::error_code failure;
    auto const parsed = json::parse(body, failure);
    if (failure || !parsed.is_object()) return refusal(400, R"(send {"name", "id", "state"})");
    auto const& order = parsed.get_object();
    auto const of_queue = std::ranges::find(queue_deeds, path, &named_deed::path);
    if (of_queue != queue_deeds.end()) return done_to_queue(desk, of_queue->deed, order, by);
    auto const name = name_in(order);
    auto const id = member(order, "id");
    if (name.empty() || id.empty() || member(order, "state").empty()) return refusal(400, "name, id and state must say which job is meant, and how it was seen");
    auto const state = state_in(member(order, "state"));
    auto const deed = path == "/api/jobs/retry" ? job_deed::retry : job_deed::cancel;
    if (has_ended(state) != (deed == job_deed::retry)) return wrong_state(state);
    auto const found = desk.find(name, id);
    if (!found) return no_such_job();
    if (found->state != state) return refusal(409, "it is " + std::string{to_string(found->state)} + " now; nothing was done");
    if (!desk.act(deed, name, *found, by, member(order, "reason").substr(0, most_reason)))
        return refusal(409, "it has changed just now; nothing was done");
    return {.body = R"({"done":true})"};
}

}  // namespace lockstep::dashboard
