// What the tests of consumers share: a log of what handlers got, and a look at the server's side of the group.
#pragma once

#include "integration/topology_support.hpp"
#include "support/contract.hpp"
#include "support/eventually.hpp"
#include "support/fault_proxy.hpp"
#include "support/redis_server.hpp"

#include <lockstep/consumer.hpp>
#include <lockstep/stream.hpp>

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace lockstep::test {

/// What was handled, and how often. Outlives the consumers.
class ledger_of_work {
public:
    void note(std::string const& value) {
        std::lock_guard const guard{mutex_};
        ++times_[value];
        order_.push_back(value);
    }
    [[nodiscard]] int times(std::string const& value) const {
        std::lock_guard const guard{mutex_};
        auto const found = times_.find(value);
        return found == times_.end() ? 0 : found->second;
    }
    [[nodiscard]] std::size_t different() const {
        std::lock_guard const guard{mutex_};
        return times_.size();
    }
    [[nodiscard]] std::vector<std::string> order() const {
        std::lock_guard const guard{mutex_};
        return order_;
    }

private:
    mutable std::mutex mutex_;
    std::map<std::string, int> times_;
    std::vector<std::string> order_;
};

/// `work` as a function or as a coroutine.
inline delivery_handler handler_of(form how, std::function<void(delivery const&)> work) {
    if (how == form::blocking) return delivery_handler{[work](delivery const& what) { work(what); }};
    return delivery_handler{[work](delivery const& what) -> task<void> {
        work(what);
        co_return;
    }};
}

inline std::string const stream_key = "lockstep:{name}:stream";

inline long pending_at(redis_server& server, std::string const& group = "g") {
    auto const said = server.command({"XPENDING", stream_key, group});
    return said.is_error() ? -1 : static_cast<long>(said.elements.at(0).integer);
}

inline std::size_t consumers_at(redis_server& server, std::string const& group = "g") {
    auto const said = server.command({"XINFO", "CONSUMERS", stream_key, group});
    return said.is_error() ? 0 : said.elements.size();
}

inline int blocked_at(redis_server& server) {
    auto const text = server.must({"INFO", "clients"}).text;
    std::string const field = "blocked_clients:";
    return std::stoi(text.substr(text.find(field) + field.size()));
}

/// A consumer waits for entries, and for word of what is given back: nothing is on its way to it.
inline bool is_at_rest(redis_server& server) {
    return blocked_at(server) == 1 && !server.must({"PUBSUB", "CHANNELS", "*:returned:*"}).elements.empty();
}

/// One client at the server, one behind a proxy, and what the handlers of their consumers did.
class consumer_faults : public testing::Test {
protected:
    delivery_handler noting() {
        return [this](delivery const& what) {
            EXPECT_TRUE(eventually([this] { return !hold.load(); }));
            deliveries = what.deliveries;
            done.note(what.as<std::string>());
            if (refuses) throw reject{"no"};
        };
    }
    bool all_is_acknowledged() {
        return eventually([&] { return pending_at(server) == 0; });
    }

    ledger_of_work done;
    std::atomic<bool> hold{false};
    std::atomic<bool> refuses{false};
    std::atomic<std::int64_t> deliveries{0};  // of the last one
    redis_server server;
    fault_proxy proxy{server.address()};
    client near{server.url()};
    client far{{.url = proxy.url(), .reconnect_max = 200ms, .keepalive_interval = 0ms}};  // no reply but those that are waited for
    stream here{near, "name"};
};

}  // namespace lockstep::test
