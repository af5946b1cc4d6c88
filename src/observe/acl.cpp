#include "observe/acl.hpp"

#include <array>

namespace lockstep::observe {
namespace {

// Not here: AUTH and HELLO, which everybody may send.
constexpr std::array by_clients{"ping",      "info",        "role",       "select",       "eval",  "evalsha", "subscribe",
                                "unsubscribe", "ssubscribe", "sunsubscribe", "watch", "unwatch", "multi",   "exec"};
constexpr std::array by_scripts{"time",  "exists", "del",   "get",     "set",     "hget",      "hmget", "hset",    "hdel",    "hgetall",
                                "hkeys", "hexists", "hlen", "hstrlen", "hrandfield", "pexpire", "pexpireat", "pttl",  "zadd", "zrem",
                                "zremrangebyscore", "publish", "spublish", "pubsub|numsub", "pubsub|shardnumsub"};
constexpr std::array by_recorders{"xadd"};
constexpr std::array by_observers{"xrange", "xrevrange", "wait"};  // of elections
constexpr std::array by_messaging{"psubscribe", "punsubscribe", "client|id", "client|unblock", "llen", "lpush", "rpush", "lindex", "lrange", "lrem", "lset", "ltrim", "lpop", "rpop", "lpos",
                                  "xlen", "xread", "xreadgroup", "xack", "xclaim", "xautoclaim", "xpending", "xdel", "xtrim", "xgroup", "xinfo", "memory|usage"};
constexpr std::array by_state{"client|tracking", "mget", "setrange", "psetex", "persist", "rename", "unlink", "hincrby", "hvals", "zcard", "zcount", "zpopmin",
                              "zrange", "zrank", "zrevrange", "zscore", "zmscore", "zremrangebyrank"};
constexpr std::array in_a_cluster{"cluster|slots", "asking"};
constexpr std::array by_monitors{"scan", "hscan", "zscan", "type", "pubsub|channels", "pubsub|shardchannels"};

/// The prefix as a pattern that fits itself only.
std::string quoted(std::string_view prefix) {
    std::string pattern;
    for (char const c : prefix) {
        if (c == '*' || c == '?' || c == '[' || c == ']' || c == '\\' || c == '^') pattern += '\\';
        pattern += c;
    }
    return pattern;
}

}  // namespace

std::vector<std::string> acl_rules(acl_needs const& needs) {
    auto const prefix = quoted(needs.prefix);
    std::vector<std::string> rules{"resetkeys", "resetchannels", "-@all", "~" + prefix + ":{*}:*", "&" + prefix + ":wake:*", "&" + prefix + ":{*}:*",
                                   "&" + prefix + ":news"};
    auto const allow = [&rules](auto const& commands) {
        for (auto const* const one : commands) rules.push_back(std::string{"+"} + one);
    };
    allow(by_clients);
    allow(by_scripts);
    allow(by_recorders);
    allow(by_observers);
    allow(by_messaging);
    allow(by_state);
    if (needs.cluster) allow(in_a_cluster);
    if (needs.looks) allow(by_monitors);
    return rules;
}

}  // namespace lockstep::observe
