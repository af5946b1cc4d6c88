#include <gtest/gtest.h>
#include <lockstep/error.hpp>
#include <lockstep/options.hpp>

#include <random>
#include <string>
#include <vector>

#include "redis/url.hpp"

namespace lockstep {
namespace {

TEST(redact_url, keeps_what_is_no_secret) {
    for (auto const* const url :
         {"redis://h", "rediss://h:1/2", "unix:///run/r.sock?db=1", "redis+sentinel://a:1,b,[::1]:2/master/3",
          "redis+cluster://a,b", "rediss://h?ca_file=/etc/ca.pem&prefix=app:1&connect_timeout_ms=5"}) {
        EXPECT_EQ(redact_url(url), url);
    }
}

TEST(redact_url, hides_passwords_and_keeps_the_user) {
    EXPECT_EQ(redact_url("redis://user:secret@h:1/2"), "redis://user:***@h:1/2");
    EXPECT_EQ(redact_url("redis://:secret@h"), "redis://:***@h");
    EXPECT_EQ(redact_url("unix://user:secret@/run/r.sock"), "unix://user:***@/run/r.sock");
    EXPECT_EQ(redact_url("redis://user:a@b@h"), "redis://user:***@h");
    EXPECT_EQ(redact_url("redis+sentinel://a/m?sentinel_user=u&sentinel_password=x&db=1"),
              "redis+sentinel://a/m?sentinel_user=u&sentinel_password=***&db=1");
    EXPECT_EQ(redact_url("redis://h?password_file=/x"), "redis://h?password_file=***");
}

TEST(redact_url, keeps_a_place_that_lacks_its_scheme_but_no_word_that_may_be_a_password) {
    for (auto const* const place : {"127.0.0.1:7399", "cache.example:6379", "localhost", "localhost/2", "[::1]:6379", "10.0.0.1", "a:1,b:2", "/run/redis/redis.sock"}) {
        EXPECT_EQ(redact_url(place), place);
    }
    for (auto const* const text : {"hunter2", "my.password", "user:hunter2", "user:secret@host:6379", "host:99999", "7399", "a:1,hunter2", "/x9+ab", "/hush", "localhost?password=x", "localhost/hush"}) {
        EXPECT_EQ(redact_url(text), "***") << text;
    }
}

TEST(redact_url, hides_more_when_in_doubt) {
    EXPECT_EQ(redact_url("redis://secret@h"), "redis://***@h");
    EXPECT_EQ(redact_url("redis://secret:@h"), "redis://***@h");
    EXPECT_EQ(redact_url("redis://user:a/b@h"), "redis://***@h");
    EXPECT_EQ(redact_url("redis://user:a?b@h"), "redis://***");
    EXPECT_EQ(redact_url("redis://user:a#b@h"), "redis://***");
    EXPECT_EQ(redact_url("redis://user:secret"), "redis://***");
    EXPECT_EQ(redact_url("redis://user/secret"), "redis://***");
    EXPECT_EQ(redact_url("redis:/user:secret@h"), "***");
    EXPECT_EQ(redact_url("user:secret@h"), "***");
    EXPECT_EQ(redact_url("http://user:secret@h"), "***");
    EXPECT_EQ(redact_url(""), "***");
    EXPECT_EQ(redact_url("redis://h?pwd=secret"), "redis://h?pwd=***");
    EXPECT_EQ(redact_url("redis://h?secret"), "redis://h?***");
    EXPECT_EQ(redact_url("redis://h?db=0password=secret"), "redis://h?db=***");
    EXPECT_EQ(redact_url("redis://h?password=a&secret=b"), "redis://h?password=***&***");
    EXPECT_EQ(redact_url("unix:///r.sock\nfake log line"), "unix://***");
}

// URLs with a secret where a password belongs, then broken in one place outside the secret.
class broken_urls {
public:
    explicit broken_urls(unsigned seed) : random_(seed) {}

    std::string secret() {
        static constexpr std::string_view harmless = "ABCXYZ0189";
        static constexpr std::string_view troublesome = "@:/?#&=%[],;+ \n\\";
        std::string text = "S3CR";  // always has a part that is nowhere else
        for (auto length = random_() % 8; length > 0; --length)
            text += one_of(random_() % 2 == 0 ? harmless : troublesome);
        return text + "ET";
    }

    std::string url(std::string const& secret) {
        auto const filler = [this] {
            return std::string(random_() % 3, 'x') + (random_() % 4 == 0 ? one_of("@:/?#&=%") : 'y');
        };
        auto const password = (random_() % 2 == 0 ? filler() : "") + secret + (random_() % 2 == 0 ? filler() : "");
        auto const scheme =
            one_of(std::vector<std::string>{"redis", "rediss", "unix", "redis+sentinel", "redis+cluster"});
        auto const place = scheme == "unix"             ? "/run/r.sock"
                           : scheme == "redis+sentinel" ? "h1:1,h2/mymaster"
                                                        : "host:1";
        std::string before = scheme + "://";
        std::string after;
        if (random_() % 2 == 0) {
            before += one_of(std::vector<std::string>{"user:", ":", "us er:", "us%zz:"});
            after =
                std::string{"@"} + place + one_of(std::vector<std::string>{"", "?name=n", "?bad", "?db=x&prefix=p"});
        } else {
            before += one_of(std::vector<std::string>{"", "user:other@"}) + place + "?" +
                      one_of(std::vector<std::string>{"", "db=0&", "bad&", "name=n&"}) +
                      one_of(std::vector<std::string>{"password=", "sentinel_password=", "my_password="});
            after = one_of(std::vector<std::string>{"", "&name=n", "&db=0&bad"});
        }
        // With an @ of its own and without the one after it, `user:x@secret` is a proper URL whose host is the secret.
        bool const keep_after = after.empty() || password.find('@') < password.find(secret);
        break_one(random_() % 2 == 0 || keep_after ? before : after);
        return before + password + after;
    }

private:
    void break_one(std::string& part) {
        auto const at = random_() % part.size();
        switch (random_() % 4) {
            case 0: part.erase(at, 1); break;
            case 1: part.insert(at, 1, one_of("@:/?#&=%.,[]")); break;
            case 2: part[at] = one_of("@:/?#&=%.,[]\n"); break;
            default: break;  // as it is
        }
    }

    char one_of(std::string_view letters) { return letters[random_() % letters.size()]; }
    std::string one_of(std::vector<std::string> const& texts) { return texts[random_() % texts.size()]; }

    std::mt19937_64 random_;
};

TEST(redact_url, never_shows_a_secret_however_broken_the_url) {
    int refused = 0;
    int accepted = 0;
    for (unsigned seed = 1; seed <= 100'000; ++seed) {
        broken_urls urls{seed};
        auto const secret = urls.secret();
        auto const url = urls.url(secret);
        auto const redacted = redact_url(url);
        ASSERT_EQ(redacted.find(secret), std::string::npos) << "seed " << seed << ": " << url << " -> " << redacted;
        // Nor a part of it; but `redis://a:b@h` that was meant as `redis://:a:b@h` can't be told from a user a.
        auto const part = secret.find(':') == std::string::npos ? "S3CR" : secret;
        ASSERT_EQ(redacted.find(part), std::string::npos) << "seed " << seed << ": " << url << " -> " << redacted;
        try {
            redis::parse_url(url);
            ++accepted;
        } catch (invalid_argument_error const& error) {
            ++refused;
            std::string const text = error.what();
            ASSERT_EQ(text.find(part), std::string::npos) << "seed " << seed << ": " << url << " -> " << text;
        }
    }
    EXPECT_GT(refused, 1000);
    EXPECT_GT(accepted, 1000);
}

TEST(redact_url, survives_any_bytes) {
    std::mt19937_64 random{7};
    for (int round = 0; round < 20'000; ++round) {
        std::string url = round % 2 == 0 ? "redis://" : "redis+sentinel://";
        for (auto length = random() % 30; length > 0; --length) {
            url += random() % 2 == 0 ? "@:/?#&=%[],"[random() % 11] : static_cast<char>(random());
        }
        auto const redacted = redact_url(url);
        for (char const c : redacted) ASSERT_TRUE(c > ' ' && c < 0x7f) << "nothing that could forge a log line";
        try {
            redis::parse_url(url);
        } catch (invalid_argument_error const&) {  // the only thing it may throw
        }
    }
}

}  // namespace
}  // namespace lockstep
