#pragma once

// What the leases of one client share: its name at the servers, the table of its holds, when which of them is due (the keeper), and the
// ear for the servers' pushes. One per client, made with the first object that holds something.

#include "core/core.hpp"
#include "lease/hold.hpp"
#include "lease/pause.hpp"
#include "lease/registration.hpp"
#include "lease/room.hpp"
#include "lease/session_pool.hpp"
#include "lease/tally.hpp"
#include "lease/tracer.hpp"
#include "redis/subscriptions.hpp"

#include <boost/intrusive/set.hpp>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::engine {

class gate;

class hub final : public detail::core::extension, redis::timer, redis::listener {
public:
    /// This client's, from any thread.
    static hub& of(detail::core& owner);
    explicit hub(detail::core& owner);
    ~hub() override;

    /// The room of a name, from any thread.
    std::shared_ptr<room> room_for(std::shared_ptr<detail::core> owner, kind const& what, std::string_view name);
    target target_for(std::shared_ptr<detail::core> owner, kind const& what, std::string_view name, lease_options const& options);
    void forget(room const& gone) noexcept;
    /// The gate of a key, from any thread; made by `make` where there is none.
    std::shared_ptr<gate> gate_for(std::string const& key, std::function<std::shared_ptr<gate>()> const& make);
    void forget(gate const& gone) noexcept;
    std::vector<std::shared_ptr<gate>> gates();
    /// This client is in use, and says who it is. From any thread.
    void register_client() noexcept { registration_.begin(); }
    /// What this client counted since it was made. From any thread.
    std::vector<ledger::total> totals() const;

    // In turns:
    detail::core& owner() const noexcept { return owner_; }
    redis::reactor& reactor() const noexcept { return owner_.home(); }
    std::string const& client_id() const noexcept { return client_id_; }
    /// The channel on which clients hear of this key, but for the client's id.
    std::string channel_of(std::string_view key) const;
    alarm_clock& alarm() const noexcept { return alarm_; }
    bool is_closing() const noexcept { return closing_; }

    /// For the ids of what is not a hold of the table: never the same twice.
    std::uint64_t next_number() noexcept { return ++last_number_; }
    session_pool& sessions() noexcept { return sessions_; }
    /// What was counted, and what is told; for people.
    ledger& counting() noexcept { return ledger_; }
    tracer& tracing() noexcept { return tracer_; }
    bool is_monitored() const noexcept { return is_monitored_; }
    /// Something is held or waited for that was not before, or not any more.
    void changed() noexcept { registration_.changed(); }
    /// The one that the server knows by this id; null: none.
    hold* find_hold(std::string_view id) const noexcept;

    hold& new_hold(std::shared_ptr<target const> what);
    void end_hold(hold& done) noexcept;  ///< it is idle: out of the table
    void recycle(hold& unused) noexcept;  ///< nobody refers to it any more; from any thread
    void schedule(hold& who, hold::clock::time_point when) noexcept;
    void unschedule(hold& who) noexcept;
    void pushed(std::string_view id) noexcept;
    void listen() noexcept;
    void rests(pause& who) noexcept { pauses_.push_back(who); }  ///< until it unlinks itself, or the client closes
    std::uint64_t connects() const noexcept;
    bool is_connected(std::int16_t slot = -1) const noexcept;  ///< to the node of that slot, or to any
    void count_release(int change) noexcept;  ///< one more, or one less, that is being given back
    /// Runs a request whose answer nobody needs. A client that closes waits for it, if it is connected.
    void see_to(task<reply> work);

    template <class F>
    void for_each_hold(F what) const {
        for (auto const* const one : table_) {
            if (one != nullptr) what(*one);
        }
    }

    std::optional<std::int64_t> offset_ms;  ///< server's clock less boot clock, where there is one server

private:
    void close(std::function<void()> done) noexcept override;
    void fire() noexcept override;  // the agenda
    void set_timer() noexcept;
    void message(std::string_view channel, std::string_view payload) noexcept override;
    void subscribed() noexcept override;
    void interrupted() noexcept override {}
    void refused(errc reason, std::string_view why) noexcept override;
    lockstep::statistics counters() const noexcept;

    using agenda = boost::intrusive::multiset<hold, boost::intrusive::base_hook<agenda_hook>, boost::intrusive::compare<hold::earlier>>;

    detail::core& owner_;
    alarm_clock& alarm_;
    std::string client_id_;
    session_pool sessions_{client_id_};
    std::string channel_;
    bool listening_ = false;
    bool closing_ = false;
    bool const is_monitored_;
    std::function<void()> closed_;
    int releasing_ = 0;

    std::vector<hold*> table_;           // by the low bits of their numbers
    std::vector<std::uint32_t> vacant_;  // free places in it
    std::uint64_t serial_ = 0;
    std::uint64_t last_number_ = 0;
    agenda agenda_;
    boost::intrusive::list<pause, boost::intrusive::base_hook<redis::list_hook>, boost::intrusive::constant_time_size<false>> pauses_;

    ledger ledger_;
    tracer tracer_{*this};
    registration registration_{*this};

    std::mutex rooms_mutex_;
    std::map<std::string, std::weak_ptr<room>, std::less<>> rooms_;
    std::map<std::string, std::weak_ptr<gate>, std::less<>> gates_;  // under rooms_mutex_ too
    std::mutex spare_mutex_;
    std::vector<hold*> spare_;
};

}  // namespace lockstep::engine
