#include "dashboard/router.hpp"

#include "common/json.hpp"
#include "dashboard/answers.hpp"
#include "dashboard/assets.hpp"
#include "dashboard/job_pages.hpp"
#include "dashboard/text.hpp"

#include <algorithm>
#include <exception>
#include <string_view>

namespace lockstep::dashboard {

namespace {

namespace json = boost::json;
using apps::as_json;

constexpr std::size_t most_history = 2'000;
constexpr std::size_t most_audit = 200;
constexpr std::chrono::seconds probe_lasts{1};
constexpr std::string_view pause_queue = "/api/queues/pause";
constexpr std::string_view resume_queue = "/api/queues/resume";

response of_asset(asset const& found, request const& asked) {
    response made{.type = std::string{found.type}, .asset = found.content};
    made.headers.emplace_back("ETag", found.etag);
    made.headers.emplace_back("Cache-Control", found.lasting ? "public, max-age=31536000, immutable" : "no-cache");
    if (asked.etag == found.etag) {
        made.status = 304;
        made.asset = {};
    }
    return made;
}

}  // namespace

void router::later(answer const& reply, std::function<response()> made) {
    parts_.work([reply, made = std::move(made)] {
        response ready;
        try {
            ready = made();
        } catch (std::exception const& failure) {
            ready = of_failure(failure);
        }
        reply(std::move(ready));
    });
}

std::optional<response> router::check_stream(request const& asked) const {
    if (auto refused = parts_.gate.check_host(asked)) return refused;
    if (asked.method != "GET") return refusal(405, "only GET");
    if (auto refused = parts_.gate.check_site(asked)) return refused;
    return parts_.gate.check_reader(asked, guard::clock::now());
}

void router::handle(request const& asked, answer const& reply) {
    if (auto refused = parts_.gate.check_host(asked)) return reply(std::move(*refused));
    if (asked.method == "GET" || asked.method == "HEAD") return get(asked, reply);
    if (asked.method == "POST") return post(asked, reply);
    auto refused = refusal(405, "only GET, HEAD and POST");
    refused.headers.emplace_back("Allow", "GET, HEAD, POST");
    reply(std::move(refused));
}

void router::get(request const& asked, answer const& reply) {
    for (auto const& one : assets())
        if (one.path == asked.path) return reply(of_asset(one, asked));
    if (asked.path == "/healthz") return probe(reply);
    if (auto refused = parts_.gate.check_site(asked)) return reply(std::move(*refused));
    if (asked.path == "/api/session") return reply(session(asked));
    constexpr std::string_view known[] = {"/metrics",     "/api/snapshot", "/api/statistics", "/api/why",     "/api/changes",
                                          "/api/history", "/api/audit",    "/api/health",     "/api/samples"};
    bool const is_of_jobs = is_job_page(asked.path);
    if (!is_of_jobs && std::ranges::find(known, asked.path) == std::end(known)) return reply(refusal(404, "there is no such page"));
    auto const now = guard::clock::now();
    auto refused = asked.path == "/metrics" ? parts_.gate.check_scraper(asked, now) : parts_.gate.check_reader(asked, now);
    if (refused) return reply(std::move(*refused));
    if (asked.path == "/api/samples") return reply({.body = parts_.samples()});
    if (is_of_jobs) return later(reply, [this, path = asked.path, query = asked.query] { return job_page_of(parts_.from.jobs(), path, query); });
    auto const name = in_query(asked.query, "name");
    if ((asked.path == "/api/why" || asked.path == "/api/changes") && (!name || name->empty())) return reply(refusal(400, "say which: ?name=NAME"));
    later(reply, [this, path = asked.path, name = name.value_or("")] { return data(path, name); });
}

// Anybody may ask, so all that ask at one time share one look.
void router::probe(answer const& reply) {
    std::unique_lock lock{probe_mutex_};
    if (probed_ && std::chrono::steady_clock::now() - probed_at_ < probe_lasts) {
        auto const known = *probed_;
        lock.unlock();
        return reply(known);
    }
    probing_.push_back(reply);
    if (probing_.size() > 1) return;  // one is under way
    lock.unlock();
    auto const all = [this](response const& made) {
        std::vector<answer> waiting;
        {
            std::lock_guard const again{probe_mutex_};
            waiting = std::exchange(probing_, {});
            probed_ = made;
            probed_at_ = std::chrono::steady_clock::now();
        }
        for (auto const& one : waiting) one(made);
    };
    parts_.look([this, all] { all(health()); });
}

// Whoever asks may be a stranger: one word, whatever the reason is.
response router::health() {
    auto state = health_state::unhealthy;
    try {
        state = parts_.from.probe();
    } catch (std::exception const&) {  // no server, or one that answers otherwise
    }
    return {.status = state == health_state::unhealthy ? 503U : 200U, .type = "text/plain; charset=utf-8", .body = std::string{to_string(state)} + '\n'};
}

response router::data(std::string const& path, std::string const& name) {
    auto& from = parts_.from;
    if (path == "/metrics") return {.type = "text/plain; version=0.0.4; charset=utf-8", .body = from.metrics()};
    if (path == "/api/snapshot") return as_response(as_json(from.snapshot()));
    if (path == "/api/statistics") return as_response(as_json(from.statistics(name)));
    if (path == "/api/history") return as_response(as_json(from.history(name, most_history)));
    if (path == "/api/changes") return as_response(as_json(from.changes(name, most_audit)));
    if (path == "/api/audit") return as_response(as_json(from.audit(most_audit)));
    if (path == "/api/health") return as_response(as_json(from.health()));
    auto const found = from.why(name);
    auto made = as_json(found);
    made.get_object()["text"] = found.text();
    return as_response(std::move(made));
}

response router::session(request const& asked) const {
    auto& gate = parts_.gate;
    bool const known = !gate.check_reader(asked, guard::clock::now());
    json::object made{{"known", known}, {"wants_token", gate.wants_token()}};
    if (known) {
        made["actions"] = gate.allows_actions();
        made["server"] = readable(parts_.from.description());
    }
    return {.body = json::serialize(made)};
}

void router::post(request const& asked, answer const& reply) {
    constexpr std::string_view actions[] = {"/api/ask", "/api/release", pause_queue, resume_queue};
    bool const action = is_job_deed(asked.path) || std::ranges::find(actions, asked.path) != std::end(actions);
    bool const login = asked.path == "/api/login" || asked.path == "/api/login/code";
    if (!action && !login && asked.path != "/api/logout") return reply(refusal(404, "nothing can be posted there"));
    if (action) return act(asked, reply);
    if (auto refused = parts_.gate.check_origin(asked)) return reply(std::move(*refused));
    reply(login ? log_in(asked) : parts_.gate.log_out(asked));
}

response router::log_in(request const& asked) const {
    boost::system::error_code failure;
    auto const body = json::parse(asked.body, failure);
    bool const with_code = asked.path == "/api/login/code";
    if (failure || !body.is_object()) return refusal(400, with_code ? R"(send {"code": "..."})" : R"(send {"token": "..."})");
    auto const now = guard::clock::now();
    if (with_code) return parts_.gate.redeem_code(member(body.get_object(), "code"), now);
    return parts_.gate.log_in(member(body.get_object(), "token"), asked.peer, now);
}

void router::act(request const& asked, answer const& reply) {
    if (auto refused = parts_.gate.check_action(asked, guard::clock::now())) return reply(std::move(*refused));
    later(reply, [this, path = asked.path, body = asked.body, peer = asked.peer] { return done(path, body, peer); });
}

// The hold is looked up again: what the page showed may be over, and then another's must not be ended in its place.
response router::done(std::string const& path, std::string const& body, std::string const& peer) {
    auto const by = parts_.by + " (dashboard, " + peer + ")";
    if (is_job_deed(path)) {
        auto made = job_deed_of(parts_.from.jobs(), path, body, by);
        parts_.acted();
        return made;
    }
    bool const of_queue = path == pause_queue || path == resume_queue;
    boost::system::error_code failure;
    auto const parsed = json::parse(body, failure);
    if (failure || !parsed.is_object()) return refusal(400, of_queue ? R"(send {"name"})" : R"(send {"name", "kind", "hold"})");
    auto const& order = parsed.get_object();
    auto const name = name_in(order);
    auto const reason = member(order, "reason").substr(0, most_reason);
    if (of_queue) {
        if (name.empty()) return refusal(400, "name must say which queue is meant");
        bool const changed = parts_.from.set_queue_paused(name, path == pause_queue, by, reason);
        parts_.acted();
        return {.body = json::serialize(json::object{{"done", changed}})};
    }
    auto const kind = member(order, "kind");
    auto const hold = member(order, "hold");
    if (name.empty() || kind.empty() || hold.empty())
        return refusal(400, "name, kind and hold must say which hold is meant");

    auto const all = parts_.from.active(name);
    auto const found =
        std::ranges::find_if(all, [&](hold_info const& one) { return one.kind == kind && readable(one.id) == hold; });
    if (found == all.end()) return refusal(409, "that hold is over already; whoever has it now was left alone");
    auto const* const force = order.if_contains("force");
    release_options const options{
        .force = force != nullptr && force->is_bool() && force->get_bool(), .by = by, .reason = reason};
    bool const reached = path == "/api/ask" ? parts_.from.ask(*found, options) : parts_.from.release(*found, options);
    parts_.acted();
    return {.body = json::serialize(json::object{{"done", reached}})};
}

}  // namespace lockstep::dashboard
