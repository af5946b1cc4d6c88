#pragma once

// Jobs that have to do with others, on their way to the server. What comes in the same turn leaves in one call, as long as that is not large: a call
// costs the server as much as several jobs. All jobs of one flow are added, or none; if the server finds fault with one of several flows before it
// writes anything, each is sent for itself. In turns, except construction.

#include "lease/awaiter.hpp"
#include "messaging/depot.hpp"

#include <boost/intrusive/list.hpp>

#include <cstddef>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::detail {

class addition;

/// One call, and whose jobs are in it.
struct added_load {
    struct parcel {
        addition* from;  // nobody: it does not wait any more
        std::size_t first, end;  // its words
    };
    std::shared_ptr<depot> at;
    std::vector<std::string> words;
    std::vector<parcel> parcels;
    std::stop_source unwanted;  // nobody waits for it any more

    void leave(addition const& who) noexcept;
};

class job_additions : public std::enable_shared_from_this<job_additions> {
public:
    /// `types`: the key of the set of types.
    job_additions(std::shared_ptr<core> owner, std::string types) : owner_(std::move(owner)), types_(std::move(types)) {}

    std::shared_ptr<core> const& owner() const noexcept { return owner_; }
    void enter(addition& what);

private:
    static task<void> send_all(std::shared_ptr<job_additions> self);
    static void dispatch(std::shared_ptr<job_additions> const& self, std::shared_ptr<added_load> const& what) noexcept;
    static task<void> send(std::shared_ptr<job_additions> self, std::shared_ptr<added_load> what);
    std::shared_ptr<added_load> next();

    std::shared_ptr<core> owner_;
    std::string types_;
    boost::intrusive::list<addition, boost::intrusive::base_hook<redis::list_hook>, boost::intrusive::constant_time_size<false>> waiting_;
};

/// Waits until the jobs of a flow are added.
class addition final : public engine::awaiter {
public:
    static constexpr std::size_t words_of_each = 6;  ///< as job_add.lua wants them

    addition(std::shared_ptr<job_additions> to, std::shared_ptr<depot> queue, std::vector<std::string> what)
        : at(std::move(queue)), words(std::move(what)), to_(std::move(to)) {}
    ~addition() { withdraw(); }
    void finish() noexcept { resume_soon(); }

    std::shared_ptr<depot> at;       ///< the queue of one of them
    std::vector<std::string> words;  ///< until it is on its way
    std::shared_ptr<added_load> in;  ///< since then
    std::vector<std::pair<std::string, bool>> ids;  ///< of each without its type, and is it new

private:
    std::shared_ptr<core> const& owner() const noexcept override { return to_->owner(); }
    void enter() override { to_->enter(*this); }
    void leave() noexcept override;

    std::shared_ptr<job_additions> to_;
};

}  // namespace lockstep::detail
