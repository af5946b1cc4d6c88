#include "quorum/plan.hpp"

#include "base/names.hpp"
#include "quorum/fleet.hpp"
#include "redis/slot.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace lockstep::quorum {
namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

constexpr milliseconds longest = 30 * 24h;
constexpr std::size_t most_keys = 100;

/// In the same slot as the key, for a node that is a cluster; and where `lockstep acl` allows it.
std::string fence_key(std::string const& prefix, std::string const& key) {
    auto const tag = redis::hash_tag(key);
    return tag.size() == key.size() ? fmt::format("{}:{{{}}}:redlock-fence", prefix, key)
                                    : fmt::format("{}:{{{}}}:redlock-fence:{}", prefix, tag, key);
}

redlock_options checked(redlock_options how, std::string const& name) {
    auto const refuse = [&name](std::string const& why) { throw invalid_argument_error(fmt::format("redlock {}: {}", name, why)); };
    auto const check = [&](milliseconds value, milliseconds least, std::string_view option, std::string_view meaning = {}) {
        if (value >= least && value <= longest) return;
        refuse(fmt::format("{} must be {} ms to 30 days{}, not {} ms", option, least.count(), meaning, value.count()));
    };
    check(how.ttl, 10ms, "ttl");
    check(how.renew_every, 0ms, "renew_every", " (0: a third of ttl)");
    if (how.renew_every == 0ms) how.renew_every = how.ttl / 3;
    if (how.renew_every > how.ttl / 2) {
        refuse(fmt::format("renew_every must be at most half of ttl ({} ms), not {} ms", (how.ttl / 2).count(), how.renew_every.count()));
    }
    if (!(how.drift_factor >= 0 && how.drift_factor <= 0.5)) {
        refuse(fmt::format("drift_factor must be 0 to 0.5, not {}", how.drift_factor));
    }
    check(how.node_timeout, 0ms, "node_timeout", " (0: a tenth of ttl)");
    if (how.node_timeout == 0ms) how.node_timeout = std::clamp(how.ttl / 10, milliseconds{20}, milliseconds{1s});
    check(how.wait_limit, 0ms, "wait_limit", " (0: for ever)");
    check(how.retry_delay, 1ms, "retry_delay");
    check(how.retry_jitter, 0ms, "retry_jitter");
    return how;
}

}  // namespace

std::string plan::name() const {
    return is_single() ? fmt::format("'{}'", keys.front()) : fmt::format("'{}' and {} more", keys.front(), keys.size() - 1);
}

plan make_plan(fleet const& nodes, std::vector<std::string> keys, redlock_options const& options) {
    if (keys.empty() || keys.size() > most_keys) {
        throw invalid_argument_error(fmt::format("a redlock takes 1 to {} resources, not {}", most_keys, keys.size()));
    }
    std::set<std::string> seen;
    for (auto const& key : keys) {
        if (key.empty() || key.size() > base::max_name_bytes) {
            throw invalid_argument_error(fmt::format("a resource's name must have 1 to {} bytes, not {}", base::max_name_bytes, key.size()));
        }
        if (!seen.insert(key).second) throw invalid_argument_error(fmt::format("the resource '{}' is given twice", key));
    }
    plan made;
    made.keys = std::move(keys);
    made.how = checked(options, made.name());
    made.slot = static_cast<std::int16_t>(redis::key_slot(made.keys.front()));
    if (options.fence) {
        for (auto const& key : made.keys) made.fences.push_back(fence_key(nodes.prefix(), key));
    }
    auto const elsewhere = [&](std::string const& key) { return redis::key_slot(key) != static_cast<std::uint16_t>(made.slot); };
    if (nodes.has_cluster() && (std::any_of(made.keys.begin(), made.keys.end(), elsewhere) ||
                                std::any_of(made.fences.begin(), made.fences.end(), elsewhere))) {
        throw invalid_argument_error("on a node that is a Cluster, the resources of a lock must share a slot: give them the same {hash tag}");
    }
    return made;
}

}  // namespace lockstep::quorum
