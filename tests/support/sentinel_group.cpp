#include "sentinel_group.hpp"

#include "eventually.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>

namespace lockstep::test {

namespace {

using fields = std::map<std::string, std::string>;

fields fields_of(reply const& flat) {
    fields result;
    for (std::size_t i = 0; i + 1 < flat.elements.size(); i += 2)
        result[flat.elements[i].text] = flat.elements[i + 1].text;
    return result;
}

bool reachable(redis_server& server) { return server.running() && !server.stopped(); }

bool says_it_is_master(redis_server& server) {
    try {
        return reachable(server) && server.info("role") == "master";
    } catch (std::exception const&) {
        return false;  // a Sentinel that promotes a server also cuts its clients: ask again
    }
}

}  // namespace

sentinel_group::sentinel_group(sentinel_options options) : options_{std::move(options)} {
    start_servers();
    start_sentinels();
    if (!wait_until_whole(std::chrono::seconds{30}))
        throw std::runtime_error{"the Sentinels do not find everyone:\n" + sentinels_.front()->log()};
}

void sentinel_group::start_servers() {
    for (std::size_t i = 0; i <= options_.replicas; ++i) {
        servers_.push_back(std::make_unique<redis_server>(server_options{.tcp = !options_.tls,
                                                                         .tls = options_.tls,
                                                                         .password = options_.password,
                                                                         .config = options_.config,
                                                                         .wait_until_ready = false}));
    }
    for (auto const& server : servers_) server->wait_until_ready();
    for (std::size_t i = 1; i < servers_.size(); ++i) {
        servers_[i]->must({"REPLICAOF", "127.0.0.1", std::to_string(servers_[0]->port())});
        servers_[i]->must({"CONFIG", "REWRITE"});  // as Sentinel does: a server that restarts remembers its master
    }
    // A Sentinel whose first look shows a replica not yet in step takes its next look a second later.
    auto const in_step = eventually([this] {
        return std::all_of(servers_.begin() + 1, servers_.end(),
                           [](auto const& server) { return server->info("master_link_status") == "up"; });
    });
    if (!in_step) throw std::runtime_error{"a replica can't reach its master:\n" + servers_.back()->log()};
}

void sentinel_group::start_sentinels() {
    auto const name = std::string{master_name};
    std::vector<std::string> config{
        "sentinel monitor " + name + " 127.0.0.1 " + std::to_string(servers_[0]->port()) + " " +
            std::to_string(options_.quorum),
        "sentinel failover-timeout " + name + " " + std::to_string(options_.failover_timeout.count()),
        "sentinel parallel-syncs " + name + " 5"};
    if (!options_.password.empty()) config.push_back("sentinel auth-pass " + name + " " + options_.password);
    if (!options_.sentinel_password.empty()) config.push_back("sentinel sentinel-pass " + options_.sentinel_password);
    for (std::size_t i = 0; i < options_.sentinels; ++i) {
        // Two notice a dead master at once, the others later: with three candidates at the same moment each votes for
        // itself, and the next election is seconds away. The late ones have a vote to give.
        auto const patience = options_.down_after.count() + (i < 2 ? 0 : 300);
        auto const line = "sentinel down-after-milliseconds " + name + " " + std::to_string(patience);
        auto own_config = config;
        own_config.push_back(line);
        sentinels_.push_back(std::make_unique<redis_server>(server_options{.tls = options_.tls,
                                                                           .password = options_.sentinel_password,
                                                                           .config = own_config,
                                                                           .sentinel = true,
                                                                           .wait_until_ready = false}));
    }
    for (auto const& sentinel : sentinels_) {
        sentinel->wait_until_ready();
        // A Sentinel looks at the servers (INFO) every 10 s. In a failover it does so once a second, whatever is set
        // here, and takes no replica whose last INFO is older than three INFO periods or, with the master down, five
        // PING periods: so both must not be too short. PING at least twice as often as the time after which a server
        // is down. And on a busy machine a late turn of its own must not count as a clock gone mad (TILT), which idles
        // it for 30 s.
        sentinel->must({"SENTINEL", "DEBUG", "INFO-PERIOD", "400", "PING-PERIOD", "300", "ASK-PERIOD", "100",
                        "TILT-TRIGGER", "20000", "TILT-PERIOD", "1000"});
    }
}

std::string sentinel_group::sentinel_url() const {
    std::string url = options_.tls ? "rediss+sentinel://" : "redis+sentinel://";
    for (auto const& sentinel : sentinels_) {
        if (url.back() != '/') url += ",";
        url += sentinel->address().address();
    }
    return url + "/" + master_name;
}

std::string sentinel_group::reported_by(redis_server& sentinel) {
    auto const answer = sentinel.must({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", master_name});
    return answer.elements.size() < 2 ? "" : answer.elements[0].text + ":" + answer.elements[1].text;
}

std::string sentinel_group::master_address() {
    std::map<std::string, std::size_t> votes;
    for (auto const& sentinel : sentinels_) {
        if (!reachable(*sentinel)) continue;
        auto const address = reported_by(*sentinel);
        if (++votes[address] > sentinels_.size() / 2) return address;
    }
    return {};
}

redis_server& sentinel_group::master() {
    auto const address = master_address();
    for (auto const& server : servers_)
        if (server->address().address() == address) return *server;
    throw std::runtime_error{"the Sentinels do not agree on a master"};
}

bool sentinel_group::sees_all(redis_server& sentinel, std::string const& master) {
    auto const about = fields_of(sentinel.must({"SENTINEL", "MASTER", master_name}));
    if (about.at("ip") + ":" + about.at("port") != master || about.at("flags") != "master") return false;
    if (about.at("num-other-sentinels") != std::to_string(sentinels_.size() - 1)) return false;
    std::map<std::string, fields> replicas;
    for (auto const& one : sentinel.must({"SENTINEL", "REPLICAS", master_name}).elements) {
        auto seen = fields_of(one);
        replicas[seen.at("name")] = std::move(seen);
    }
    return std::all_of(servers_.begin(), servers_.end(), [&](auto const& server) {
        auto const address = server->address().address();
        if (address == master || !reachable(*server)) return true;
        auto const found = replicas.find(address);
        if (found == replicas.end()) return false;
        auto const& seen = found->second;
        return seen.at("flags") == "slave" && seen.at("master-link-status") == "ok" &&
               seen.at("master-host") + ":" + seen.at("master-port") == master;
    });
}

bool sentinel_group::wait_until_whole(std::chrono::milliseconds timeout) {
    auto const all_sentinels = [this](auto const& condition) {
        auto const address = master_address();
        return !address.empty() && std::all_of(sentinels_.begin(), sentinels_.end(), [&](auto const& sentinel) {
            return !reachable(*sentinel) || condition(*sentinel, address);
        });
    };
    auto const deadline = now_ms() + timeout.count();
    auto const agree = [this](auto& sentinel, auto const& address) { return reported_by(sentinel) == address; };
    if (!eventually([&] { return all_sentinels(agree); }, timeout)) return false;
    set_publish_period("100");
    auto const whole = [this](auto& sentinel, auto const& address) { return sees_all(sentinel, address); };
    auto const done = eventually([&] { return all_sentinels(whole); }, std::chrono::milliseconds{deadline - now_ms()});
    set_publish_period("1000");
    return done;
}

// How often a Sentinel makes itself known to the others. Four of these periods is also how long it bears a replica that
// says it is a master before it turns it back. So it is short only while all agree on the master: during a failover it
// has to be longer than the leader takes to see its own promotion, which is a second, or else the others undo it.
void sentinel_group::set_publish_period(std::string const& milliseconds) {
    for (auto const& sentinel : sentinels_)
        if (reachable(*sentinel)) sentinel->must({"SENTINEL", "DEBUG", "PUBLISH-PERIOD", milliseconds});
}

void sentinel_group::failover() {
    auto const old = master_address();
    // Always the same Sentinel: a second one would start a second failover. It is asked again when it gives up, or says
    // NOGOODSLAVE because it has not heard of the replicas lately; while it is at it, it says INPROG.
    auto const leader =
        std::find_if(sentinels_.begin(), sentinels_.end(), [](auto const& one) { return reachable(*one); });
    if (leader == sentinels_.end()) throw std::runtime_error{"no Sentinel is running"};
    auto const moved = eventually(
        [&] {
            static_cast<void>((*leader)->command({"SENTINEL", "FAILOVER", master_name}));
            return wait_until_master_is_not(old, std::chrono::seconds{3});
        },
        std::chrono::seconds{20});
    if (!moved || !wait_until_whole()) throw std::runtime_error{"the failover did not happen:\n" + (*leader)->log()};
}

redis_server& sentinel_group::kill_master() {
    auto& current = master();
    current.kill9();
    return current;
}

redis_server& sentinel_group::pause_master() {
    auto& current = master();
    current.stop();
    return current;
}

bool sentinel_group::wait_until_master_is_not(std::string const& old, std::chrono::milliseconds timeout) {
    return eventually(
        [&] {
            auto const address = master_address();
            if (address.empty() || address == old) return false;
            return says_it_is_master(master());
        },
        timeout);
}

}  // namespace lockstep::test
