// What is answered to what: paths, rights, and the form of the answers. No sockets here.
//
//   GET  /  /assets/...              the page; needs no token, and has nothing of anybody in it
//   GET  /healthz                    200 or 503, and one word; needs no token
//   GET  /metrics                    for Prometheus
//   GET  /api/session                who asks, and what is allowed
//   POST /api/login                  {"token": "..."} -> {"session": "..."}, which X-Lockstep-Session carries from then on
//   POST /api/login/code             {"code": "..."}, the same for the code of a link
//   POST /api/logout
//   GET  /api/snapshot               everything at one time, as `lockstep ls --json`
//   GET  /api/statistics /api/why /api/changes /api/history      ?name=NAME
//   GET  /api/audit /api/health /api/samples
//   POST /api/ask /api/release       {"name", "kind", "hold": its id, "reason", "force": true or false}
//   POST /api/queues/pause /api/queues/resume    {"name", "reason"}: {"done": whether it was not so already}; not of jobs
//   GET  /api/jobs...  POST /api/jobs/retry /api/jobs/cancel     job_pages.hpp
//   GET  /api/stream                 is not here: the session hands the socket to stream.hpp
#pragma once

#include "dashboard/backend.hpp"
#include "dashboard/guard.hpp"
#include "dashboard/http.hpp"

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::dashboard {

struct router_parts {
    backend& from;
    guard& gate;
    std::string by;
    std::function<void(std::function<void()>)> work;  // runs what may block
    std::function<void(std::function<void()>)> look;  // the same, for /healthz: it does not wait for what others ask
    std::function<std::string()> samples;             // on the thread of handle()
    std::function<void()> acted;                      // on any
};

class router {
public:
    using answer = std::function<void(response)>;

    explicit router(router_parts parts) : parts_(std::move(parts)) {}

    // Answers once: at once, or later from a worker.
    void handle(request const& asked, answer const& reply);
    // How long to wait before handle() or check_stream().
    [[nodiscard]] std::chrono::milliseconds delay(request const& asked) const { return parts_.gate.delay(asked, guard::clock::now()); }
    [[nodiscard]] bool knows(request const& asked) const { return parts_.gate.known(asked, guard::clock::now()); }
    [[nodiscard]] bool wants_token() const noexcept { return parts_.gate.wants_token(); }
    // Whether a stream may begin: nothing, or what to answer instead.
    [[nodiscard]] std::optional<response> check_stream(request const& asked) const;

private:
    void get(request const& asked, answer const& reply);
    void post(request const& asked, answer const& reply);
    [[nodiscard]] response log_in(request const& asked) const;
    void act(request const& asked, answer const& reply);
    [[nodiscard]] response session(request const& asked) const;
    void probe(answer const& reply);
    [[nodiscard]] response health();
    void later(answer const& reply, std::function<response()> made);
    [[nodiscard]] response data(std::string const& path, std::string const& name);
    [[nodiscard]] response done(std::string const& path, std::string const& body, std::string const& peer);

    router_parts parts_;
    std::mutex probe_mutex_;
    std::vector<answer> probing_;  // who waits for the look that is under way
    std::optional<response> probed_;
    std::chrono::steady_clock::time_point probed_at_{};
};

}  // namespace lockstep::dashboard
