// Where the dashboard's server gets what it shows. Every call may block and may throw; the server makes them on threads of its own.
#pragma once

#include "dashboard/job_desk.hpp"

#include <lockstep/health.hpp>
#include <lockstep/monitor.hpp>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::dashboard {

class backend {
public:
    virtual ~backend() = default;

    virtual lockstep::snapshot snapshot() = 0;
    virtual std::vector<name_statistics> statistics(std::string_view name) = 0;
    virtual explanation why(std::string_view name) = 0;
    virtual std::vector<history_entry> history(std::string_view name, std::size_t most) = 0;
    virtual std::vector<leader_change> changes(std::string_view name, std::size_t most) = 0;
    virtual std::vector<audit_entry> audit(std::size_t most) = 0;
    virtual std::vector<hold_info> active(std::string_view name) = 0;
    virtual bool ask(hold_info const& which, release_options options) = 0;
    virtual bool release(hold_info const& which, release_options options) = 0;
    // A queue that is not one of jobs. False: it was so already. Written to the audit first.
    virtual bool set_queue_paused(std::string const& name, bool paused, std::string const& by, std::string const& reason) = 0;
    virtual health_report health() = 0;
    virtual health_state probe() = 0;  // the same without writing anything
    virtual std::string metrics() = 0;  // Prometheus text

    // Calls until what it returned is gone. The handler is quick and may be called on any thread.
    virtual std::shared_ptr<void> watch(std::function<void(lockstep::snapshot const&)> handler) = 0;
    virtual job_desk& jobs() = 0;
    // What is being looked at, for the head of the page: without secrets.
    virtual std::string description() = 0;
};

// What a client's server has.
class monitor_backend : public backend {
public:
    explicit monitor_backend(client& by) : client_(by), monitor_(by), jobs_(by) {}

    lockstep::snapshot snapshot() override;
    std::vector<name_statistics> statistics(std::string_view name) override;
    explanation why(std::string_view name) override;
    std::vector<history_entry> history(std::string_view name, std::size_t most) override;
    std::vector<leader_change> changes(std::string_view name, std::size_t most) override;
    std::vector<audit_entry> audit(std::size_t most) override;
    std::vector<hold_info> active(std::string_view name) override;
    bool ask(hold_info const& which, release_options options) override;
    bool release(hold_info const& which, release_options options) override;
    bool set_queue_paused(std::string const& name, bool paused, std::string const& by, std::string const& reason) override;
    health_report health() override;
    health_state probe() override;
    std::string metrics() override;
    std::shared_ptr<void> watch(std::function<void(lockstep::snapshot const&)> handler) override;
    job_desk& jobs() override { return jobs_; }
    std::string description() override;

private:
    // What calls beside the watch could not read, by their names: it is shown with what the watch could not.
    struct unread_keys {
        std::vector<std::string> all() const;
        mutable std::mutex mutex;
        std::map<std::string, std::vector<std::string>> of_calls;
    };
    template <class F>
    auto with_notes(char const* call, F read);

    client& client_;
    std::shared_ptr<unread_keys> unread_ = std::make_shared<unread_keys>();
    lockstep::monitor monitor_;
    job_desk jobs_;
};

}  // namespace lockstep::dashboard
