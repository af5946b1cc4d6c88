#include "redis/url.hpp"

#include <gtest/gtest.h>
#include <lockstep/error.hpp>

namespace lockstep::redis {
namespace {

using namespace std::chrono_literals;

std::string refusal(std::string_view url) {
    try {
        parse_url(url);
    } catch (invalid_argument_error const& error) {
        return error.what();
    }
    ADD_FAILURE() << "accepted " << url;
    return {};
}

void expect_refusal(std::string_view url, std::string_view word) {
    EXPECT_NE(refusal(url).find(word), std::string::npos) << url << " -> " << refusal(url);
}

TEST(url, reads_a_single_server) {
    auto const where = parse_url("redis://cache.example:7000/3");
    EXPECT_EQ(where.kind, topology::standalone);
    EXPECT_FALSE(where.tls);
    EXPECT_FALSE(where.embedded);
    EXPECT_EQ(where.endpoints, (std::vector<endpoint>{{"cache.example", 7000, ""}}));
    EXPECT_EQ(where.database, 3);
    EXPECT_EQ(where.user + where.password + where.prefix, "");
}

TEST(url, has_defaults_for_port_and_database) {
    for (auto const* const url : {"redis://h", "redis://h/", "rediss://h", "REDIS://h", "redis://h?"}) {
        auto const where = parse_url(url);
        EXPECT_EQ(where.endpoints, (std::vector<endpoint>{{"h", 6379, ""}})) << url;
        EXPECT_EQ(where.database, 0) << url;
    }
    EXPECT_TRUE(parse_url("rediss://h").tls);
}

TEST(url, decodes_user_and_password) {
    auto where = parse_url("redis://us%20er:p%40%2F%3f%23%25%00@h");
    EXPECT_EQ(where.user, "us er");
    EXPECT_EQ(where.password, std::string("p@/?#%\0", 7));
    where = parse_url("redis://:only@h");
    EXPECT_EQ(where.user, "");
    EXPECT_EQ(where.password, "only");
    where = parse_url("redis://u:a:b@c@h");
    EXPECT_EQ(where.password, "a:b@c");
    EXPECT_EQ(parse_url("redis://u:@h").user, "u");
}

TEST(url, reads_ipv6_in_brackets) {
    EXPECT_EQ(parse_url("redis://[::1]").endpoints, (std::vector<endpoint>{{"::1", 6379, ""}}));
    EXPECT_EQ(parse_url("redis://[fe80::1%eth0]:7000/1").endpoints,
              (std::vector<endpoint>{{"fe80::1%eth0", 7000, ""}}));
    EXPECT_EQ(to_string(parse_url("redis://[::1]:7000").endpoints[0]), "[::1]:7000");
    EXPECT_EQ(to_string(parse_url("redis://h").endpoints[0]), "h:6379");
}

TEST(url, reads_a_unix_socket) {
    auto const where = parse_url("unix://u:p@/run/my%20redis/r.sock?db=2");
    EXPECT_EQ(where.endpoints, (std::vector<endpoint>{{"", 0, "/run/my redis/r.sock"}}));
    EXPECT_EQ(where.user + "/" + where.password, "u/p");
    EXPECT_EQ(where.database, 2);
    EXPECT_EQ(to_string(parse_url("unix:///r.sock").endpoints[0]), "/r.sock");
}

TEST(url, reads_sentinels) {
    auto const where =
        parse_url("rediss+sentinel://u:p@a,b:7000,[::1]/my%20master/4?sentinel_user=su&sentinel_password=s%26p");
    EXPECT_EQ(where.kind, topology::sentinel);
    EXPECT_TRUE(where.tls);
    EXPECT_EQ(where.endpoints, (std::vector<endpoint>{{"a", 26379, ""}, {"b", 7000, ""}, {"::1", 26379, ""}}));
    EXPECT_EQ(where.master_name, "my master");
    EXPECT_EQ(where.database, 4);
    EXPECT_EQ(where.sentinel_user + "/" + where.sentinel_password, "su/s&p");
}

TEST(url, reads_a_cluster) {
    auto const where = parse_url("redis+cluster://:p@a:1,b:2/0");
    EXPECT_EQ(where.kind, topology::cluster);
    EXPECT_EQ(where.endpoints, (std::vector<endpoint>{{"a", 1, ""}, {"b", 2, ""}}));
    EXPECT_EQ(parse_url("rediss+cluster://a").endpoints[0].port, 6379);
}

TEST(url, reads_every_query_key) {
    auto const where = parse_url(
        "rediss://u@h?db=1&name=n&password_file=/p&ca_file=/ca&cert_file=/c&key_file=/k&server_name=s"
        "&prefix=pre&connect_timeout_ms=5&command_timeout_ms=6");
    EXPECT_EQ(where.database, 1);
    EXPECT_EQ(where.name, "n");
    EXPECT_EQ(where.password_file, "/p");
    EXPECT_EQ(where.tls_files.ca_file, "/ca");
    EXPECT_EQ(where.tls_files.certificate_file, "/c");
    EXPECT_EQ(where.tls_files.key_file, "/k");
    EXPECT_EQ(where.tls_files.server_name, "s");
    EXPECT_EQ(where.prefix, "pre");
    EXPECT_EQ(where.connect_timeout, 5ms);
    EXPECT_EQ(where.command_timeout, 6ms);
    EXPECT_EQ(parse_url("redis+sentinel://h/m?sentinel_password_file=/s").sentinel_password_file, "/s");
}

TEST(url, says_what_is_wrong_and_what_is_allowed) {
    expect_refusal("", "redis://, rediss://, unix://");
    expect_refusal("host", "redis+cluster://");
    expect_refusal("host", "as in redis://host:6379");
    expect_refusal("http://h", "rediss+sentinel://");
    expect_refusal("redis://", "host is missing");
    expect_refusal("redis://:6379", "host:port");
    expect_refusal("redis://h:", "1 to 65535");
    expect_refusal("redis://h:0", "1 to 65535");
    expect_refusal("redis://h:65536", "1 to 65535");
    expect_refusal("redis://h:+1", "1 to 65535");
    expect_refusal("redis://::1", "[IPv6]:port");
    expect_refusal("redis://[::1", "[IPv6]:port");
    expect_refusal("redis://[h]", "[IPv6]:port");
    expect_refusal("redis://a b", "host:port");
    expect_refusal("redis://a,b", "redis+sentinel:// or redis+cluster://");
    expect_refusal("redis+cluster://a,,b", "host:port");
    expect_refusal("redis+cluster://a,", "host:port");
    expect_refusal("redis+cluster://a/1", "no database but 0");
    expect_refusal("redis+cluster://a?db=1", "no database but 0");
    expect_refusal("redis://h/x", "database is a number");
    expect_refusal("redis://h/-1", "database is a number");
    expect_refusal("redis://h/9999999999", "database is a number");
    expect_refusal("redis://h/1?db=1", "twice");
    expect_refusal("redis+sentinel://h", "redis+sentinel://host:26379/mymaster");
    expect_refusal("redis+sentinel:///m", "host is missing");
    expect_refusal("unix://run/r.sock", "three slashes");
    expect_refusal("unix:///", "three slashes");
    expect_refusal("unix:///" + std::string(107, 'x'), "107 bytes");
    expect_refusal("redis://x@h", "user without a password");
    expect_refusal("redis://u:p%4@h", "two hexadecimal digits");
    expect_refusal("redis://u:p#@h", "%23");
    expect_refusal("redis://u:p@h?password_file=/x", "give one");
    expect_refusal("redis://u%0a:p@h", "control characters");
}

TEST(url, asks_whether_another_was_meant_where_the_scheme_is_missing) {
    expect_refusal("127.0.0.1:7399", "127.0.0.1:7399 has no scheme; did you mean redis://127.0.0.1:7399?");
    expect_refusal("localhost", "did you mean redis://localhost?");
    expect_refusal("[::1]:6379/2", "did you mean redis://[::1]:6379/2?");
    expect_refusal("a:1,b:2", "did you mean redis+cluster://a:1,b:2?");
    expect_refusal("/run/redis.sock", "did you mean unix:///run/redis.sock?");
    for (auto const* const text : {"hunter2", "user:hunter2", "user:hunter2@host:1"}) EXPECT_EQ(refusal(text).find("hunter2"), std::string::npos) << text;
}

TEST(url, refuses_unknown_and_misplaced_query_keys) {
    expect_refusal("redis://h?cafile=/x", "ca_file, cert_file");
    expect_refusal("redis://h?cafile=/x", "cafile=***");
    expect_refusal("redis://h?password=x", "password=***");
    expect_refusal("redis://h?db", "key=value");
    expect_refusal("redis://h?db=", "no value");
    expect_refusal("redis://h?name=a&name=b", "twice");
    expect_refusal("redis://h?connect_timeout_ms=0", "from 1 to");
    expect_refusal("redis://h?sentinel_user=x", "redis+sentinel://");
    expect_refusal("redis+sentinel://h/m?sentinel_user=x", "without sentinel_password");
}

}  // namespace
}  // namespace lockstep::redis
