#pragma once

// The nodes of some redlocks, and what all locks over them share: where decisions are made, the table of what this process holds, the ear for
// wake-ups, the end.
//
// Each node is a client's core: requests to it and their answers are its turns. Decisions are made in turns of one of them, `home`: the
// first node's, where these nodes are ours and so cannot be closed before us, or one node is all there is; with several clients of the
// user's a core without a connection, because theirs may be closed at any time.

#include "core/core.hpp"
#include "core/io_thread.hpp"
#include "lease/alarm_clock.hpp"
#include "quorum/ballot.hpp"
#include "redis/subscriptions.hpp"

#include <lockstep/options.hpp>

#include <array>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::quorum {

class grip;
class room;
struct anchor;

class fleet final : public std::enable_shared_from_this<fleet> {
public:
    static std::shared_ptr<fleet> make(std::span<client_options const> nodes);
    static std::shared_ptr<fleet> make(std::vector<std::shared_ptr<detail::core>> nodes);
    /// All redlocks over one client share it.
    static std::shared_ptr<anchor> over(std::shared_ptr<detail::core> const& node);
    ~fleet();

    // From any thread:
    std::size_t size() const noexcept { return nodes_.size(); }
    std::size_t quorum() const noexcept { return ballot::quorum_of(size()); }
    detail::core& node(std::size_t index) const noexcept { return *nodes_[index]; }
    std::shared_ptr<detail::core> const& home() const noexcept { return home_; }
    redis::reactor& reactor() const noexcept { return home_->home(); }
    /// Or, with clients of the user's, on a thread that none of them has.
    bool decides_at_a_node() const noexcept { return home_ == nodes_.front(); }
    engine::alarm_clock& alarm() const noexcept { return alarm_; }
    std::string const& prefix() const noexcept { return home_->options().prefix; }
    bool has_cluster() const noexcept;
    std::string description() const;
    bool same_process() const noexcept { return home_->same_process(); }
    /// Throw where it must not be used: in a child of fork(), and where a blocking form would wait for itself.
    void require_usable() const;
    void require_blocking() const;
    std::shared_ptr<room> room_for(std::vector<std::string> const& keys);
    void forget(room const& gone) noexcept;
    void recycle(grip& unused) noexcept;
    /// The last that users had is gone: waits a second at most for what is being released. Not where that would wait for itself: then it
    /// goes on by itself.
    void let_settle() noexcept;

    /// Which two nodes are one server; empty: none, as far as is known.
    std::string sameness() const;

    // In turns of home:
    /// Asks those nodes which server they are that have not said so yet. The answer is there before that to whatever is asked next.
    void identify(std::int16_t slot, redis::reactor::clock::time_point deadline);
    /// What the channels of processes begin with; this process's id ends its own.
    std::string const& channels() const noexcept { return channels_; }
    std::string const& process() const noexcept { return process_; }
    bool is_closing() const noexcept { return closing_; }
    grip& new_grip();
    /// 128 bits from the kernel, as text.
    void append_random(std::string& to);
    void ended(grip& done) noexcept;
    /// Hear on all nodes who waits for what this process holds, and when what it waits for is free.
    void listen();
    /// Tells the first of these waiters, by whatever node it is connected to.
    void pass_on(std::string_view token, std::vector<std::string> const& waiters);
    /// Everything ends; `done` when what is held has been given back.
    void close(std::function<void()> done) noexcept;

private:
    class ear;
    class identity;

    fleet(std::vector<std::shared_ptr<detail::core>> nodes, std::shared_ptr<detail::core> home, bool owns_nodes,
          std::shared_ptr<detail::io_thread> thread);
    void identified(std::size_t node, std::string_view run_id);
    void heard(std::size_t node, std::string_view payload);
    void wanted(std::string_view token, std::vector<std::string> waiters);
    void freed(std::size_t node, std::string_view number, std::string_view token, std::vector<std::string> waiters);

    std::shared_ptr<detail::io_thread> thread_;  // ours, of nodes that are ours; goes last
    std::vector<std::shared_ptr<detail::core>> nodes_;
    std::shared_ptr<detail::core> home_;
    bool const owns_nodes_;
    engine::alarm_clock& alarm_;
    std::string process_;
    std::string channels_;
    std::vector<std::shared_ptr<ear>> ears_;
    std::vector<std::unique_ptr<identity>> identities_;
    mutable std::mutex identities_mutex_;  // what they found
    std::string sameness_;
    bool closing_ = false;
    std::function<void()> closed_;

    std::array<std::uint64_t, 32> random_{};
    std::size_t random_left_ = 0;
    redis::reactor::clock::time_point random_since_{};

    std::vector<grip*> table_;
    std::vector<std::uint32_t> vacant_;
    std::mutex spare_mutex_;
    std::vector<grip*> spare_;

    std::mutex rooms_mutex_;
    std::map<std::string, std::weak_ptr<room>, std::less<>> rooms_;  // by their keys
    std::map<std::uint64_t, std::weak_ptr<room>> numbers_;
    std::uint64_t last_number_ = 0;

    std::mutex settle_mutex_;
    std::condition_variable settled_;
    std::atomic<std::size_t> active_{0};  // in the table
    std::atomic<bool> settling_{false};
};

}  // namespace lockstep::quorum
