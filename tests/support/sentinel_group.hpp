// One master, its replicas and the Sentinels that watch them, all real, with periods cut down so that a failover takes
// a second or two instead of half a minute.
#pragma once

#include "redis_server.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::test {

struct sentinel_options {
    std::size_t replicas = 2;
    std::size_t sentinels = 3;
    std::size_t quorum = 2;
    std::string password{};                            // of the servers' default user
    std::string sentinel_password{};                   // of the Sentinels' default user
    std::chrono::milliseconds down_after{700};         // not much less: a Sentinel sends a PING every 300 ms
    std::chrono::milliseconds failover_timeout{2000};  // a failed election is repeated after twice this
    std::optional<tls_files> tls{};                    // servers and Sentinels then speak TLS only
    std::vector<std::string> config{};                 // further lines for the servers
};

// Servers are numbered from 0; number 0 is the first master. Addresses are "127.0.0.1:port". One thread at a time.
class sentinel_group {
public:
    static constexpr auto const* master_name = "mymaster";

    // Ready when each Sentinel knows all others and sees every replica in step with the master.
    explicit sentinel_group(sentinel_options options = {});

    // redis+sentinel://127.0.0.1:p1,127.0.0.1:p2,127.0.0.1:p3/mymaster (rediss+sentinel with TLS); no credentials in
    // it.
    [[nodiscard]] std::string sentinel_url() const;

    [[nodiscard]] redis_server& server(std::size_t index) { return *servers_.at(index); }
    [[nodiscard]] redis_server& sentinel(std::size_t index) { return *sentinels_.at(index); }
    [[nodiscard]] std::size_t servers() const { return servers_.size(); }
    [[nodiscard]] std::size_t sentinels() const { return sentinels_.size(); }

    // As a majority of the Sentinels says; empty while there is none.
    [[nodiscard]] std::string master_address();
    [[nodiscard]] redis_server& master();

    // An orderly failover (SENTINEL FAILOVER); returns when the group is whole again around the new master.
    void failover();

    // The master as it was, killed or stopped; the failover follows, see wait_until_master_is_not.
    redis_server& kill_master();
    redis_server& pause_master();

    // True when a majority names another master than `old` and that one says it is a master.
    [[nodiscard]] bool wait_until_master_is_not(std::string const& old,
                                                std::chrono::milliseconds timeout = std::chrono::seconds{20});
    // True when every running Sentinel sees a master that is up and all running servers but one as its replicas, in
    // step.
    [[nodiscard]] bool wait_until_whole(std::chrono::milliseconds timeout = std::chrono::seconds{20});

private:
    void start_servers();
    void start_sentinels();
    void set_publish_period(std::string const& milliseconds);
    [[nodiscard]] bool sees_all(redis_server& sentinel, std::string const& master);
    [[nodiscard]] std::string reported_by(redis_server& sentinel);

    sentinel_options options_;
    std::vector<std::unique_ptr<redis_server>> servers_;
    std::vector<std::unique_ptr<redis_server>> sentinels_;
};

}  // namespace lockstep::test
