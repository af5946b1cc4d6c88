#pragma once

// The jobs of one name: the queue of each type, and the scripts on it.

#include "core/keyed.hpp"
#include "jobs/job_additions.hpp"
#include "messaging/depot.hpp"
#include "messaging/message_counts.hpp"

#include <lockstep/detail/raw_jobs.hpp>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::detail {

/// What a job's queue is like for who schedules; who works says more.
queue_options job_queue_options() noexcept;

class job_office : public std::enable_shared_from_this<job_office> {
public:
    job_office(client& by, std::string_view name)
        : all_(by, name, "jobs"), counts_(message_counts::of(*all_.owner())), additions_(std::make_shared<job_additions>(all_.owner(), all_.key_of("types"))) {}

    keyed const& all() const noexcept { return all_; }
    std::shared_ptr<core> const& owner() const noexcept { return all_.owner(); }
    job_tally& tally() const noexcept { return counts_->jobs; }
    std::shared_ptr<job_additions> const& additions() const noexcept { return additions_; }
    /// Throws `invalid_argument_error` for what is no type. From any thread.
    std::shared_ptr<depot> queue_of(std::string_view type);

    /// A script on these parts of the queue of a type; "" is its hash.
    static task<reply> run(std::shared_ptr<depot> at, scripts::script const& script, std::vector<std::string_view> parts, std::vector<std::string> words);
    /// How a job ended, or its state. Throws `protocol_error` for a result that is larger than the client takes in.
    static task<job_outcome> ask_end(std::shared_ptr<depot> at, std::string id);
    /// Hears a channel of the queue of a type.
    static task<subscription> listen(std::shared_ptr<depot> at, std::string part, std::function<void(std::string_view)> handler, std::function<void()> on_gap);

private:
    keyed all_;
    std::shared_ptr<message_counts> counts_;
    std::shared_ptr<job_additions> additions_;
    std::mutex mutex_;
    std::map<std::string, std::shared_ptr<depot>, std::less<>> queues_;
};

}  // namespace lockstep::detail
