#pragma once

// What stands behind a `client` and is shared by everything made from it: the reactor, its thread, the ways to the server.

#include "core/object_index.hpp"
#include "redis/reactor.hpp"
#include "redis/router.hpp"
#include "redis/session_router.hpp"
#include "redis/url.hpp"

#include <lockstep/client.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::detail {

class io_thread;

/// The user's own executor, for a client that has no thread.
struct home_executor {
    boost::asio::any_io_executor executor;
    std::function<bool()> running_here;
};

class core : public std::enable_shared_from_this<core> {
public:
    /// What an upper layer keeps for each client.
    class extension {
    public:
        virtual ~extension() = default;
        /// In a turn, while requests still go out: sees to what it owes, and calls `done` in a turn when that is settled.
        virtual void close(std::function<void()> done) noexcept = 0;
    };

    static std::shared_ptr<core> make(client_options const& options, std::optional<home_executor> home = {});
    ~core();

    redis::reactor& home() const noexcept { return *home_; }
    /// The way to the server; whoever has it keeps this core alive.
    std::shared_ptr<redis::router> way() noexcept { return {shared_from_this(), way_.get()}; }
    client_options const& options() const noexcept { return options_; }
    /// The one of that name, made when first asked for. From any thread.
    extension& extend(std::string const& name, std::function<std::unique_ptr<extension>(core&)> const& make);
    /// Which objects there are, for monitors.
    object_index& objects() noexcept { return objects_; }
    bool is_cluster() const noexcept { return where_.kind == redis::topology::cluster; }
    redis::location const& where() const noexcept { return where_; }

    /// In a turn: the way for users' subscriptions, with connections of its own.
    redis::router& bus();
    /// In a turn: the way for reads of whose keys the server tells when they change, with connections of its own.
    std::shared_ptr<redis::router> tracked();
    std::shared_ptr<redis::session_router> make_session(std::int16_t slot);
    /// To one of the Sentinels, for a few questions.
    std::shared_ptr<redis::session_router> make_sentinel_session(redis::endpoint const& sentinel);

    /// Where a command's first key stands, as far as the server was asked (command_rules.hpp). In any thread.
    std::optional<int> key_position(std::string const& command) const;
    void set_key_position(std::string const& command, int position);

    redis::reactor::clock::time_point deadline(std::chrono::milliseconds time) const noexcept;

    /// False where nothing here may be waited for: on a thread that does I/O or runs the client's executor, and in a child made by fork().
    bool may_block() const noexcept;
    /// Throws when a blocking form must not be called here.
    void require_blocking_is_allowed() const;
    /// Throws in a child made by fork().
    void require_same_process() const;
    bool same_process() const noexcept;

    lockstep::statistics statistics();
    std::string description() const;
    /// As CLIENT LIST shows it.
    std::string const& client_name() const noexcept { return greeting_.client_name; }
    /// When this client was made.
    std::chrono::system_clock::time_point since() const noexcept { return since_; }
    void close() noexcept;
    bool closed() const noexcept { return closed_; }

private:
    core(client_options const& options, std::optional<home_executor> home);
    /// `prefix`: as for cluster_router, where channels that scripts publish on are listened to by it.
    std::unique_ptr<redis::router> make_way(redis::handshake const& greeting, std::string const& prefix = {});
    redis::connection::locator make_locator();
    std::shared_ptr<redis::session_router> add_session(redis::handshake const& greeting, redis::connection::locator find,
                                                       std::function<void()> astray);
    void close_here() noexcept;
    void close_extensions(std::function<void()> done) noexcept;

    client_options options_;
    redis::location where_;
    std::chrono::system_clock::time_point since_ = std::chrono::system_clock::now();
    int fork_generation_;
    std::shared_ptr<io_thread> thread_;  // null on the user's executor
    std::shared_ptr<redis::reactor> home_;
    redis::connection_settings settings_;
    redis::handshake greeting_;
    std::unique_ptr<redis::router> way_;
    std::unique_ptr<redis::router> bus_;
    std::unique_ptr<redis::router> tracked_;
    std::atomic<bool> closed_{false};
    object_index objects_{*this};

    std::mutex sessions_mutex_;
    std::vector<std::weak_ptr<redis::session_router>> sessions_;

    std::mutex extensions_mutex_;
    std::map<std::string, std::unique_ptr<extension>> extensions_;  // after the ways: they go first

    mutable std::mutex positions_mutex_;
    std::map<std::string, int> positions_;
};

/// For headers that need the core of a client: primitives, and <lockstep/asio.hpp>.
struct core_access {
    static std::shared_ptr<core> const& of(client const& owner) noexcept { return owner.core_; }
    static client make(std::shared_ptr<core> owner) noexcept { return client{std::move(owner)}; }
};

}  // namespace lockstep::detail
