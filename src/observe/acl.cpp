#include "observe/acl.hpp"

#include "base/names.hpp"
#include "messaging/glob.hpp"
#include "observe/audit.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

namespace lockstep::observe {
namespace {

constexpr unsigned bit(acl_use use) noexcept { return 1U << static_cast<unsigned>(use); }
constexpr unsigned locks = bit(acl_use::locks), messaging = bit(acl_use::messaging), jobs = bit(acl_use::jobs), state = bit(acl_use::state);
constexpr unsigned near_cache = bit(acl_use::near_cache), look = bit(acl_use::look), act = bit(acl_use::act);
constexpr unsigned programs = locks | messaging | jobs | state, writers = programs | act, all = writers | near_cache | look;

struct right {
    std::string_view command;
    unsigned uses;
};

// Not here: AUTH and HELLO, which everybody may send; CLIENT UNBLOCK, which ends the waiting of any client of the server.
constexpr right rights[] = {
    {"client|tracking", near_cache}, {"del", programs | act}, {"eval", programs | act}, {"eval_ro", all}, {"evalsha", programs | act},
    {"evalsha_ro", all}, {"exec", locks}, {"exists", all}, {"get", programs | act}, {"hdel", programs | act},
    {"hexists", messaging | jobs | state | look | act}, {"hget", all}, {"hgetall", locks | messaging | state | near_cache | look | act},
    {"hincrby", messaging | jobs | state | act}, {"hkeys", locks | look | act}, {"hlen", programs | look | act}, {"hmget", all},
    {"hrandfield", programs}, {"hscan", look | act}, {"hset", programs | act}, {"hstrlen", look | act}, {"info", all}, {"lindex", jobs | state | look | act},
    {"llen", messaging | jobs | look | act}, {"lpop", jobs | act}, {"lpos", jobs | look | act}, {"lpush", messaging | jobs | act},
    {"lrange", messaging | jobs | look | act}, {"lrem", jobs | act}, {"lset", jobs | state | act}, {"ltrim", messaging | jobs | state | act},
    {"memory|usage", messaging | jobs | act}, {"multi", locks}, {"persist", messaging | jobs | state | act}, {"pexpire", programs | act},
    {"pexpireat", programs | act}, {"ping", all}, {"psetex", jobs | state}, {"psubscribe", messaging}, {"pttl", writers | near_cache},
    {"publish", programs | act}, {"pubsub|numsub", locks | messaging | jobs | look | act}, {"punsubscribe", messaging},
    {"rename", jobs | state | act}, {"role", all}, {"rpop", jobs | act}, {"rpush", messaging | jobs | state | act}, {"set", programs | act},
    {"setrange", jobs | state}, {"subscribe", programs | look | act}, {"time", all}, {"unlink", messaging | jobs | state | act},
    {"unsubscribe", programs | look | act}, {"wait", locks}, {"watch", locks}, {"xack", messaging}, {"xadd", locks | messaging | jobs | act},
    {"xautoclaim", messaging}, {"xclaim", messaging}, {"xdel", messaging | act}, {"xgroup|create", messaging},
    {"xgroup|delconsumer", messaging}, {"xgroup|destroy", messaging}, {"xgroup|setid", messaging}, {"xinfo|consumers", messaging},
    {"xinfo|groups", messaging | look | act}, {"xinfo|stream", messaging}, {"xlen", messaging | jobs | look | act}, {"xpending", messaging},
    {"xrange", locks | messaging | look | act}, {"xread", messaging}, {"xreadgroup", messaging}, {"xrevrange", locks | messaging | look | act},
    {"xtrim", messaging | jobs | act}, {"zadd", programs | act}, {"zcard", messaging | jobs | state | look | act},
    {"zcount", messaging | jobs | state | look | act}, {"zmscore", jobs | look | act}, {"zpopmin", messaging | jobs | act},
    {"zrange", programs | look | act}, {"zrank", messaging | jobs | state | act}, {"zrem", programs | act}, {"zremrangebyrank", jobs | act},
    {"zremrangebyscore", programs}, {"zrevrange", messaging | look | act}, {"zscan", look | act}, {"zscore", programs | look | act},
};
constexpr right rights_in_a_cluster[] = {
    {"pubsub|shardnumsub", locks | messaging | jobs | look | act}, {"spublish", programs | act}, {"ssubscribe", programs | look | act},
    {"sunsubscribe", programs | look | act}, {"cluster|slots", all}, {"asking", all},
};
constexpr right rights_to_scan[] = {{"scan", look | act}, {"pubsub|channels", look | act}};
constexpr right rights_to_scan_a_cluster[] = {{"pubsub|shardchannels", look | act}};

void check_prefix(std::string_view prefix) {
    base::check_prefix(prefix);
    auto const at = prefix.find_first_of(" \"'`\\()");
    if (at == std::string_view::npos) return;
    throw invalid_argument_error(fmt::format(
        "the prefix \"{}\" has the character \"{}\", which could end one ACL rule and begin another; use a prefix without spaces, quotes, backslashes and parentheses",
        prefix, prefix.substr(at, 1)));
}

}  // namespace

std::vector<std::string> acl_rules(acl_needs const& needs) {
    check_prefix(needs.prefix);
    auto const prefix = detail::quoted_glob(needs.prefix);
    unsigned uses = 0;
    for (auto const use : needs.uses) uses |= bit(use);
    bool const writes = (uses & writers) != 0;
    // Where new users may use all channels (acl-pubsub-default), `reset` allows them.
    std::vector<std::string> rules{"reset", "resetchannels", (writes ? "~" : "%R~") + prefix + ":{*}:*"};
    if (writes) rules.insert(rules.end(), {"&" + prefix + ":wake:*", "&" + prefix + ":{*}:*"});
    if (writes || (uses & look) != 0) rules.push_back("&" + prefix + ":news");
    if ((uses & (look | act)) != 0) rules.push_back("%R~" + audit_key(prefix));
    auto const allow = [&](auto const& commands) {
        for (auto const& one : commands) {
            if ((one.uses & uses) != 0) rules.push_back("+" + std::string{one.command});
        }
    };
    allow(rights);
    if (needs.database) rules.emplace_back("+select");
    if (needs.cluster) allow(rights_in_a_cluster);
    if (needs.scan) allow(rights_to_scan);
    if (needs.scan && needs.cluster) allow(rights_to_scan_a_cluster);
    if ((uses & act) != 0) rules.push_back(fmt::format("(+rpush %W~{})", audit_key(prefix)));
    return rules;
}

}  // namespace lockstep::observe
