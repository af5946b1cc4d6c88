#pragma once

// What this process has to do with one broadcast event, latch or barrier: who waits here, and the questions to the server.
//
// Nobody holds such an object. It changes, and all who wait for that hear of it: the server tells each client once, by a push that names
// the key, and forgets that it waits. The push is a hint. The gate then asks, once for all who wait here, and that registers this client
// again where somebody still has to wait. When the last one leaves, the gate takes the registration back.
//
// A question answers for those who came before it was sent; for those who came later there is another one. What an answer means is the
// business of the object (src/sync): it derives from this. In turns, except construction and destruction.

#include "core/object_index.hpp"
#include "lease/gate_answer.hpp"
#include "lease/server_clock.hpp"
#include "lease/settings.hpp"
#include "lease/visitor.hpp"
#include "redis/subscriptions.hpp"
#include "scripts/script.hpp"

#include <lockstep/client.hpp>
#include <lockstep/request.hpp>
#include <lockstep/task.hpp>
#include <lockstep/trace.hpp>

#include <boost/intrusive/list.hpp>

#include <chrono>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::detail {
class core;
}

namespace lockstep::engine {

class hub;

class gate : public std::enable_shared_from_this<gate>, redis::arrival, redis::listener {
public:
    using clock = redis::reactor::clock;

    struct place {
        std::shared_ptr<detail::core> owner;
        std::string key;
        std::string name;
        settings how;
    };
    explicit gate(place where);
    virtual ~gate();
    gate(gate const&) = delete;

    std::shared_ptr<detail::core> const& owner() const noexcept { return owner_; }
    hub& home() const noexcept { return hub_; }
    std::int16_t slot() const noexcept { return slot_; }
    std::string const& key() const noexcept { return key_; }
    std::string const& name() const noexcept { return name_; }
    /// What kind of thing it is: the last part of its key.
    std::string_view word() const noexcept { return std::string_view{key_}.substr(key_.rfind(':') + 1); }
    std::string rules_for(settings const& how) const;

    // Visitors:
    void enter(visitor& who) noexcept;
    void leave(visitor& who) noexcept;
    /// What it waits for, in a word for people (registration.hpp).
    virtual std::string_view purpose(visitor const& who) const noexcept = 0;
    template <class F>
    void for_each_visitor(F what) const {
        for (auto const& one : visitors_) what(one);
    }

    /// For people: what became of one that waits, or of the object.
    void tell(trace_what what, visitor const* who, std::string_view detail = {}) noexcept;

    // What the server tells:
    void changed() noexcept;
    void reconnected() noexcept;
    void close() noexcept;
    /// How often it told that something changed: who sends something and then waits must not miss what was told meanwhile.
    std::uint64_t changes() const noexcept { return changes_; }
    void listen() noexcept;

    /// Runs a script on the key, until the answer is there or its time is over. May run twice.
    task<gate_answer> call(scripts::script const& script, std::initializer_list<detail::argument> words, clock::time_point until);
    /// A new id at the server, `<client>.<n>`, and a larger n than any before.
    std::string new_id();
    /// The server's time after which a command must not run that is given up at `until`.
    std::int64_t latest(clock::time_point until) const noexcept;
    /// Frees those whom this answer frees, of the first `covered` who came.
    void answered(gate_answer const& said, std::uint64_t covered) noexcept;
    void answered(gate_answer const& said) noexcept { answered(said, entries_); }
    /// A question was not answered: those who have waited for one for too long hear of it.
    void failed(errc reason, std::string_view why) noexcept;

protected:
    using visitor_list = boost::intrusive::list<visitor, boost::intrusive::base_hook<redis::list_hook>,
                                                boost::intrusive::constant_time_size<false>>;

    /// Asks for all who wait. `id` is one to register this client with.
    virtual task<gate_answer> ask(std::string id, clock::time_point until) = 0;
    /// Does the answer end this visitor's wait? Notes what it has to know for the next one if not.
    virtual bool frees(gate_answer const& said, visitor& who) noexcept = 0;
    /// Takes a registration back; null: there is none.
    virtual scripts::script const* leaving() const noexcept { return nullptr; }
    /// What a visitor is told that could not be answered for too long.
    virtual errc hopeless() const noexcept { return errc::unavailable; }

    visitor_list const& visitors() const noexcept { return visitors_; }
    std::string const& rules() const noexcept { return rules_; }

private:
    static detail::root ask_for_all(std::shared_ptr<gate> self);
    static detail::root take_back(std::shared_ptr<gate> self, std::string id);
    static task<gate_answer> read(std::shared_ptr<gate> self, task<reply> answer);
    void want() noexcept;
    void rest() noexcept;
    void free_the_curious() noexcept;

    void arrive() noexcept override;  // it is time to ask, and all of this turn have come
    void fire() noexcept override;    // it is time to look again

    // Cluster: its own channel.
    void message(std::string_view channel, std::string_view payload) noexcept override;
    void subscribed() noexcept override;
    void interrupted() noexcept override {}
    void refused(errc reason, std::string_view why) noexcept override;

    std::shared_ptr<detail::core> owner_;
    hub& hub_;
    std::string key_;
    std::string name_;
    std::string rules_;
    std::chrono::milliseconds look_every_;
    std::int16_t slot_;
    bool listening_ = false;
    bool asking_ = false;
    bool wanted_ = false;
    bool closing_ = false;
    detail::object_index::mark noted_;
    visitor_list visitors_;
    std::string registered_;  // the id by which the server knows that somebody waits here, if it does
    std::uint64_t entries_ = 0;
    std::uint64_t changes_ = 0;
    clock::time_point next_look_{};
    clock::time_point last_contact_{};
    server_clock clock_;
};

/// One object at a gate: where it is and by which settings. Shared by the object and all that it started.
struct gate_target {
    std::shared_ptr<gate> where;
    settings how;
    std::string rules;  ///< as in broadcast_set.lua: claim window, retention, channel
    std::shared_ptr<void> kept{};  ///< keeps the key from expiring
};

/// The target of an object of class `Gate` (whose constructor takes a place) with this word in its key.
template <class Gate>
gate_target gate_target_for(client& by, std::string_view word, std::string_view name, lease_options const& options);

/// Begins an operation: throws in a child of fork(), or where a blocking form must not be called.
void require_usable(gate const& at);
void require_blocking(gate const& at);

/// Runs a script that counts once: `n` (where it has one), session, sequence, deadline, rules.
task<gate_answer> count_once(std::shared_ptr<gate> at, scripts::script const& script, std::string rules, std::int64_t n = 0);

/// True: set free; false: the time was over. Throws `unavailable_error` when it is over and there is no server.
task<bool> wait_at(std::shared_ptr<gate> at, gate::clock::time_point until);

/// As `settings::wait_limit` allows from now on.
gate::clock::time_point limit_of(settings const& how);

namespace parts {
gate::place place_of(client& by, std::string_view word, std::string_view name, lease_options const& options);
std::shared_ptr<gate> find(gate::place const& where, std::shared_ptr<gate> (*make)(gate::place));
std::shared_ptr<void> keep(gate const& at, settings const& how);
}  // namespace parts

template <class Gate>
gate_target gate_target_for(client& by, std::string_view word, std::string_view name, lease_options const& options) {
    auto const place = parts::place_of(by, word, name, options);
    auto found = parts::find(place, [](gate::place where) -> std::shared_ptr<gate> { return std::make_shared<Gate>(std::move(where)); });
    auto rules = found->rules_for(place.how);
    auto kept = parts::keep(*found, place.how);
    return {.where = std::move(found), .how = place.how, .rules = std::move(rules), .kept = std::move(kept)};
}

}  // namespace lockstep::engine
