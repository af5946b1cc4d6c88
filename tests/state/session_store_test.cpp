// What a session store promises, in both forms on every topology; then under faults.
#include <lockstep/session_store.hpp>

#include "state_support.hpp"
#include "support/clock_file.hpp"

#include <set>

namespace lockstep::test {
namespace {

class session_store_contract : public contract {
protected:
    std::string create(std::string const& user, session_fields const& fields = {}) {
        return run(
            a, [&] { return of_a.create(user, fields); }, [&] { return of_a.async_create(user, fields); });
    }
    auto get(std::string const& id, std::string const& field) {
        return run(
            b, [&] { return of_b.get(id, field); }, [&] { return of_b.async_get(id, field); });
    }
    auto read(std::string const& id) {
        return run(
            b, [&] { return of_b.read(id); }, [&] { return of_b.async_read(id); });
    }
    auto update(std::string const& id, session_update const& what) {
        return run(
            a, [&] { return of_a.update(id, what); }, [&] { return of_a.async_update(id, what); });
    }
    auto rotate(std::string const& id) {
        return run(
            a, [&] { return of_a.rotate(id); }, [&] { return of_a.async_rotate(id); });
    }
    bool destroy(std::string const& id) {
        return run(
            a, [&] { return of_a.destroy(id); }, [&] { return of_a.async_destroy(id); });
    }
    std::set<std::string> list(std::string const& user) {
        auto const found = run(
            b, [&] { return of_b.list(user); }, [&] { return of_b.async_list(user); });
        return {found.begin(), found.end()};
    }
    std::size_t destroy_all(std::string const& user) {
        return run(
            a, [&] { return of_a.destroy_all(user); }, [&] { return of_a.async_destroy_all(user); });
    }
    bool touch(session_store& which, std::string const& id) {
        return run(
            a, [&] { return which.touch(id); }, [&] { return which.async_touch(id); });
    }
    redis_server& server_with(std::string const& id) { return server_of("web/" + id.substr(0, 3)); }
    static std::string key_of(std::string const& id) {
        return "lockstep:{web/" + id.substr(0, 3) + "}:session:" + session_store::handle_of(id);
    }

    session_store of_a{a, "web", {.command_timeout = 10s}};
    session_store of_b{b, "web", {.command_timeout = 10s}};
};
LOCKSTEP_CONTRACT(session_store_contract);

using handles = std::set<std::string>;
template <class... Id>
handles of(Id const&... id) {
    return {session_store::handle_of(id)...};
}

TEST_P(session_store_contract, keeps_fields_of_sessions) {
    auto const id = create("ada", {{"theme", "dark"}, {"n", ""}, {std::string("b\0c", 3), std::string("\0", 1)}});
    EXPECT_EQ(id.size(), 25U);
    EXPECT_NE(id, create("ada"));
    EXPECT_EQ(get(id, "theme"), "dark");
    EXPECT_EQ(get(id, "n"), "");
    EXPECT_FALSE(get(id, "v")) << "the store's own fields are its own";
    auto const all = read(id);
    ASSERT_TRUE(all);
    EXPECT_EQ(all->user, "ada");
    EXPECT_EQ(all->fields, (session_fields{{"theme", "dark"}, {"n", ""}, {std::string("b\0c", 3), std::string("\0", 1)}}));
    EXPECT_GT(all->version, 0U);
    EXPECT_EQ(all->ends - all->begun, 30 * 24h);
    session_store other{b, "other"};
    EXPECT_FALSE(other.read(id)) << "another store's";
}

TEST_P(session_store_contract, updates_all_fields_at_once_or_none) {
    auto const id = create("ada", {{"a", "1"}, {"b", "2"}});
    auto const version = read(id)->version;
    EXPECT_EQ(update(id, {.set = {{"a", "3"}, {"c", "4"}}, .erase = {"b"}}), session_outcome::updated);
    EXPECT_EQ(read(id)->fields, (session_fields{{"a", "3"}, {"c", "4"}}));
    EXPECT_EQ(update(id, {.set = {{"a", "9"}}, .expected = version}), session_outcome::conflict);
    EXPECT_EQ(update(id, {.set = {{"a", "5"}}, .expected = read(id)->version}), session_outcome::updated);
    EXPECT_EQ(get(id, "a"), "5");
    for (int i = 0; i < 20; ++i) EXPECT_EQ(update(id, {.set = {{"i", std::to_string(i)}}}), session_outcome::updated);
    EXPECT_LE(server_with(id).must({"HGET", key_of(id), "w"}).text.size(), 8U * 23) << "of the latest writes only";
    EXPECT_TRUE(destroy(id));
    EXPECT_EQ(update(id, {.set = {{"a", "6"}}}), session_outcome::absent);
    EXPECT_FALSE(read(id));
}

TEST_P(session_store_contract, goes_on_under_another_id_and_the_old_one_is_gone) {
    auto const id = create("ada", {{"a", "1"}});
    auto const before = read(id);
    auto const fresh = rotate(id);
    ASSERT_TRUE(fresh);
    EXPECT_NE(*fresh, id);
    EXPECT_FALSE(read(id));
    EXPECT_FALSE(rotate(id));
    auto const after = read(*fresh);
    ASSERT_TRUE(after);
    EXPECT_EQ(after->fields, before->fields);
    EXPECT_EQ(after->ends, before->ends) << "it does not live longer";
    EXPECT_EQ(list("ada"), of(*fresh));
    EXPECT_GT(server_with(*fresh).must({"PTTL", key_of(*fresh)}).integer, 0);
}

TEST_P(session_store_contract, knows_the_sessions_of_a_user) {
    EXPECT_EQ(list("ada"), handles{});
    auto const first = create("ada");
    auto const second = create("ada");
    auto const third = create("ada");
    auto const other = create("bob {x}");
    EXPECT_EQ(list("ada"), of(first, second, third));
    EXPECT_EQ(list("bob {x}"), of(other));
    EXPECT_TRUE(destroy(second));
    EXPECT_FALSE(destroy(second));
    EXPECT_EQ(list("ada"), of(first, third));
    server_with(first).must({"DEL", key_of(first)});  // as when it has expired
    EXPECT_EQ(list("ada"), of(third));
    EXPECT_EQ(destroy_all("ada"), 1U);
    EXPECT_EQ(destroy_all("ada"), 0U);
    EXPECT_FALSE(read(third));
    EXPECT_TRUE(read(other)) << "somebody else's";
    EXPECT_EQ(server_with(third).must({"EXISTS", "lockstep:{web/" + third.substr(0, 3) + "}:sessions:ada"}).integer, 0);
}

TEST_P(session_store_contract, ends_when_it_is_not_used_and_after_its_lifetime) {
    session_store brief{a, "web", {.ttl = 60ms, .command_timeout = 10s}};
    auto const id = brief.create("ada", {{"a", "1"}});
    EXPECT_TRUE(eventually([&] { return server_with(id).must({"EXISTS", key_of(id)}).integer == 0; }));
    EXPECT_FALSE(touch(brief, id));
    // Using it, in any way, begins its ttl anew.
    session_store store{a, "web", {.ttl = 1h, .command_timeout = 10s}};
    auto const used = store.create("ada", {{"a", "1"}});
    auto const shorten = [&] { server_with(used).must({"PEXPIRE", key_of(used), "60000"}); };
    auto const is_renewed = [&] { return server_with(used).must({"PTTL", key_of(used)}).integer > 3'500'000; };
    shorten();
    EXPECT_EQ(get(used, "a"), "1");
    EXPECT_TRUE(is_renewed());
    shorten();
    EXPECT_TRUE(read(used));
    EXPECT_TRUE(is_renewed());
    shorten();
    EXPECT_TRUE(touch(of_a, used)) << "by the ttl that it was created with";
    EXPECT_TRUE(is_renewed());
    shorten();
    EXPECT_EQ(update(used, {.set = {{"a", "2"}}}), session_outcome::updated);
    EXPECT_TRUE(is_renewed());
    shorten();
    EXPECT_EQ(list("ada"), of(used));
    EXPECT_FALSE(is_renewed()) << "a look at the list is no use";
    session_store short_lived{a, "web", {.ttl = 1h, .lifetime = 60ms, .command_timeout = 10s}};
    auto const ending = short_lived.create("bob");
    EXPECT_TRUE(eventually([&] { return !touch(of_a, ending); }));
    EXPECT_EQ(list("bob"), handles{});
}

TEST_P(session_store_contract, finds_the_living_among_thousands_that_have_ended) {
    auto const first = create("ada");
    auto const group = first.substr(0, 3);
    auto const index = "lockstep:{web/" + group + "}:sessions:ada";
    // Thousands that ended for want of use; some end at the latest before the living ones, some after, many at the same time.
    auto const last = std::stoll(server_with(first).must({"ZSCORE", index, session_store::handle_of(first)}).text);
    auto const bury = [&](int from, int until, long long ends) {
        std::vector<std::string> words{"ZADD", index};
        for (int i = from; i < until; ++i) {
            auto const number = std::to_string(i);
            words.insert(words.end(), {std::to_string(ends), group + std::string(43 - number.size(), '0') + number});
        }
        server_with(first).must(words);
    };
    bury(0, 2500, last - 1000);
    bury(2500, 4000, last);
    bury(4000, 4100, last + 1'000'000);
    handles living = of(first);
    for (int i = 0; i < 3; ++i) living.insert(session_store::handle_of(create("ada")));
    EXPECT_EQ(list("ada"), living);
    EXPECT_EQ(server_with(first).must({"ZCARD", index}).integer, 4) << "and the others are forgotten";
    // More of the living than one look sees, also of those that end in the same ms.
    std::vector<begun<std::string>> creating;
    for (int i = 0; i < 2300; ++i) creating.emplace_back(of_a.async_create("ada"));
    for (auto& one : creating) living.insert(session_store::handle_of(one.get()));
    EXPECT_EQ(of_b.list("ada").size(), living.size()) << "each once";
    EXPECT_EQ(list("ada"), living);
    for (auto const& one : living) server_with(first).must({"ZADD", index, "XX", std::to_string(last), one});
    EXPECT_EQ(of_b.list("ada").size(), living.size()) << "each once";
    EXPECT_EQ(list("ada"), living);
    bury(0, 2500, last - 1000);
    EXPECT_EQ(destroy_all("ada"), living.size());
}

TEST_P(session_store_contract, forgets_those_that_have_ended_though_nobody_asks_for_a_list) {
    auto const first = create("ada");
    auto const index = "lockstep:{web/" + first.substr(0, 3) + "}:sessions:ada";
    for (int i = 0; i < 600; ++i) {
        auto const id = of_a.create("ada");
        server_with(id).must({"DEL", key_of(id)});  // as when it has expired
    }
    EXPECT_LT(server_with(first).must({"ZCARD", index}).integer, 200);
    EXPECT_EQ(list("ada"), of(first));
}

TEST_P(session_store_contract, tells_only_one_that_he_destroyed_it) {
    for (int i = 0; i < 20; ++i) {
        auto const id = create("ada");
        begun one{of_a.async_destroy(id)};
        begun other{of_b.async_destroy(id)};
        EXPECT_EQ(one.get() + other.get(), 1);
    }
}

TEST_P(session_store_contract, does_not_ask_for_what_is_no_id) {
    server.must({"CONFIG", "RESETSTAT"});
    for (std::string const id : {"", "x", "../../etc/passwd", "00000000000000000000000 0", "zzz0000000000000000000000", "0000000000000000000000000000"}) {
        EXPECT_FALSE(read(id));
        EXPECT_FALSE(get(id, "a"));
        EXPECT_FALSE(rotate(id));
        EXPECT_FALSE(destroy(id));
        EXPECT_FALSE(of_a.rotate(id, "ada"));
        EXPECT_FALSE(of_a.peek(id));
        EXPECT_FALSE(of_a.destroy_handle(id));
        EXPECT_EQ(update(id, {}), session_outcome::absent);
    }
    EXPECT_EQ(calls_of(server, "evalsha") + calls_of(server, "eval") + calls_of(server, "hget"), 0);
    EXPECT_EQ(ending_of([&] { create(""); }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { create(std::string(513, 'x')); }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { session_store(a, ""); }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { session_store(a, "x", {.ttl = 0ms}); }).reason, errc::invalid_argument);
    EXPECT_EQ(ending_of([&] { session_store(a, "x", {.command_timeout = 0ms}); }).reason, errc::invalid_argument);
    EXPECT_EQ(session_store::handle_of("x"), "");
    auto const id = create("ada");
    server_with(id).must({"DEL", key_of(id)});
    server_with(id).must({"SET", key_of(id), "mine"});
    auto const failure = ending_of([&] { static_cast<void>(read(id)); });
    EXPECT_EQ(failure.reason, errc::server);
    EXPECT_EQ(failure.text.find(id), std::string::npos) << "ids are secrets";
}

TEST_P(session_store_contract, shows_no_id_to_who_reads_the_server) {
    auto id = create("ada", {{"a", "1"}});
    for (int i = 0; i < 2; ++i) {
        auto const handle = session_store::handle_of(id);
        EXPECT_EQ(handle.size(), 46U);
        EXPECT_EQ(list("ada"), handles{handle});
        auto& there = server_with(id);
        for (auto const& key : there.must({"KEYS", "*"}).elements) {
            EXPECT_EQ(key.text.find(id), std::string::npos);
            auto const type = there.must({"TYPE", key.text}).text;
            if (type != "hash" && type != "zset") continue;
            for (auto const& one : there.must(type == "hash" ? std::vector<std::string>{"HGETALL", key.text}
                                                             : std::vector<std::string>{"ZRANGE", key.text, "0", "-1"})
                                       .elements)
                EXPECT_EQ(one.text.find(id), std::string::npos);
        }
        EXPECT_FALSE(read(handle)) << "a handle opens nothing";
        EXPECT_FALSE(touch(of_a, handle));
        EXPECT_FALSE(destroy(handle));
        id = rotate(id).value();
    }
}

TEST_P(session_store_contract, gives_a_list_of_a_users_devices_that_can_be_looked_at_and_ended) {
    auto const here = create("ada", {{"device", "phone"}});
    auto const there = create("ada", {{"device", "laptop"}});
    server_with(here).must({"PEXPIRE", key_of(here), "60000"});
    std::set<std::string> devices;
    for (auto const& handle : list("ada")) {
        auto const found = run(
            a, [&] { return of_a.peek(handle); }, [&] { return of_a.async_peek(handle); });
        ASSERT_TRUE(found);
        EXPECT_EQ(found->user, "ada");
        devices.insert(found->fields.at("device"));
    }
    EXPECT_EQ(devices, (std::set<std::string>{"laptop", "phone"}));
    EXPECT_LE(server_with(here).must({"PTTL", key_of(here)}).integer, 60'000) << "which does not use them";
    auto const destroy_handle = [&](std::string const& handle) {
        return run(
            a, [&] { return of_a.destroy_handle(handle); }, [&] { return of_a.async_destroy_handle(handle); });
    };
    EXPECT_TRUE(destroy_handle(session_store::handle_of(there)));
    EXPECT_FALSE(destroy_handle(session_store::handle_of(there)));
    EXPECT_FALSE(read(there));
    EXPECT_EQ(list("ada"), of(here));
}

// Visitors have sessions; one of them logs in, another one as somebody else, and then everybody is logged out everywhere.
TEST_P(session_store_contract, is_the_users_from_the_log_in_on) {
    auto const begin = [&] {
        return run(
            a, [&] { return of_a.create_anonymous({{"cart", "17"}}); }, [&] { return of_a.async_create_anonymous({{"cart", "17"}}); });
    };
    auto const log_in = [&](std::string const& id, std::string const& user) {
        return run(
            a, [&] { return of_a.rotate(id, user); }, [&] { return of_a.async_rotate(id, user); });
    };
    std::set<std::string> slots;
    for (int i = 0; i < 20; ++i) {  // in some of a Cluster's slots, or all in one
        auto const visitor = begin();
        slots.insert(visitor.substr(0, 3));
        auto const before = read(visitor);
        ASSERT_TRUE(before);
        EXPECT_EQ(before->user, "");
        EXPECT_EQ(before->fields, (session_fields{{"cart", "17"}}));
        auto const another = rotate(visitor).value();
        EXPECT_EQ(read(another)->user, "") << "still nobody's";
        auto const id = log_in(another, "ada");
        ASSERT_TRUE(id);
        EXPECT_FALSE(read(another)) << "the old id is gone";
        EXPECT_FALSE(log_in(another, "ada"));
        auto const after = read(*id);
        ASSERT_TRUE(after);
        EXPECT_EQ(after->user, "ada");
        EXPECT_EQ(after->fields, before->fields);
        EXPECT_EQ(after->begun, before->begun);
        EXPECT_EQ(after->ends, before->ends) << "it does not live longer";
        EXPECT_GT(server_with(*id).must({"PTTL", key_of(*id)}).integer, 0);
        EXPECT_EQ(list("ada"), of(*id));
        EXPECT_EQ(update(*id, {.set = {{"cart", "18"}}, .expected = after->version}), session_outcome::updated);
        auto const eve = log_in(*id, "eve");
        ASSERT_TRUE(eve);
        EXPECT_EQ(list("ada"), handles{}) << "it is another's now";
        EXPECT_EQ(list("eve"), of(*eve));
        auto const again = log_in(*eve, "ada");
        ASSERT_TRUE(again);
        EXPECT_EQ(get(*again, "cart"), "18");
        EXPECT_EQ(destroy_all("eve"), 0U);
        EXPECT_EQ(destroy_all("ada"), 1U);
        EXPECT_FALSE(read(*again));
    }
    EXPECT_GT(slots.size(), 10U) << "visitors are everywhere";
    EXPECT_FALSE(log_in(session_store::handle_of(begin()), "ada"));
    EXPECT_EQ(ending_of([&] { static_cast<void>(log_in("x", "")); }).reason, errc::invalid_argument);
}

// Two that log in at once with one id: one goes on. Somebody who writes meanwhile loses nothing.
TEST_P(session_store_contract, logs_in_once_and_loses_no_write_meanwhile) {
    for (int i = 0; i < 20; ++i) {
        auto const id = of_a.create_anonymous();
        begun one{of_a.async_rotate(id, "ada")};
        begun other{of_b.async_rotate(id, "ada")};
        begun writing{of_b.async_update(id, {.set = {{"a", "1"}}})};
        auto const first = one.get(), second = other.get();
        bool const written = writing.get() == session_outcome::updated;
        ASSERT_NE(first.has_value(), second.has_value());
        auto const next = first ? *first : *second;
        EXPECT_EQ(list("ada"), of(next));
        EXPECT_EQ(get(next, "a").has_value(), written);
        EXPECT_TRUE(destroy(next));
    }
}

TEST(session_store_faults, a_lost_reply_changes_nothing_twice) {
    redis_server server;
    fault_proxy proxy{server.address()};
    client far{proxy.url()};
    client near{server.url()};
    session_store there{far, "web", {.command_timeout = 10s}};
    session_store here{near, "web", {.command_timeout = 10s}};
    proxy.drop_replies(1);
    auto const id = there.create("ada", {{"a", "1"}});
    EXPECT_EQ(here.list("ada").size(), 1U);
    // A reply to an update is lost, somebody else's update comes, and it is sent again.
    there.update(id, {.set = {{"a", "2"}}});
    proxy.hold(direction::to_client);
    begun updating{there.async_update(id, {.set = {{"a", "3"}}})};
    ASSERT_TRUE(eventually([&] { return here.get(id, "a") == "3"; }));
    here.update(id, {.set = {{"a", "4"}}});
    proxy.cut();
    proxy.heal();
    EXPECT_EQ(updating.get(), session_outcome::updated);
    EXPECT_EQ(here.get(id, "a"), "4");
    // The reply to the look at whose it is ("$3", "ada") goes through, and one byte of the reply to the rotation.
    there.rotate(here.create("bob"));  // the server knows the script
    auto const struck = proxy.counters().struck;
    proxy.cut_after(10);
    auto const fresh = there.rotate(id);
    EXPECT_EQ(proxy.counters().struck, struck + 1);
    ASSERT_TRUE(fresh);
    EXPECT_FALSE(here.read(id));
    EXPECT_EQ(here.read(*fresh)->fields, (session_fields{{"a", "4"}}));
    EXPECT_EQ(here.list("ada"), std::vector<std::string>{session_store::handle_of(*fresh)});
}

// The server answers reads, and what writes waits at the server until its client has long given it up.
TEST(session_store_faults, a_change_that_is_given_up_says_so_and_does_not_come_late) {
    redis_server server;
    client brief{server.url()};
    client near{server.url()};
    session_store through{brief, "web", {.command_timeout = 300ms}};
    session_store here{near, "web", {.command_timeout = 10s}};
    auto const id = through.create("ada", {{"a", "1"}});
    through.update(id, {.set = {{"b", "1"}}});  // the server knows the scripts
    through.destroy(through.rotate(through.create("bob")).value());
    auto const is_given_up = [&](auto const& call) {
        server.must({"CLIENT", "PAUSE", "100000", "WRITE"});
        auto const end = ending_of(call);
        auto const until = now_ms() + 50;
        EXPECT_TRUE(eventually([&] { return now_ms() > until; }));
        server.must({"CLIENT", "UNPAUSE"});
        through.touch(id);  // behind it
        return end.reason == errc::indeterminate;
    };
    EXPECT_TRUE(is_given_up([&] { through.update(id, {.set = {{"a", "2"}}}); }));
    EXPECT_EQ(here.get(id, "a"), "1");
    EXPECT_TRUE(is_given_up([&] { through.rotate(id); }));
    EXPECT_EQ(here.list("ada"), std::vector<std::string>{session_store::handle_of(id)});
    EXPECT_TRUE(here.read(id));
    EXPECT_TRUE(is_given_up([&] { through.destroy(id); }));
    EXPECT_TRUE(here.read(id));
    EXPECT_TRUE(is_given_up([&] { through.destroy_all("ada"); }));
    EXPECT_TRUE(here.read(id));
    EXPECT_TRUE(is_given_up([&] { through.create("eve"); }));
    EXPECT_TRUE(here.list("eve").empty());
    EXPECT_EQ(through.update(id, {.set = {{"a", "3"}}}), session_outcome::updated) << "and goes on";
}

// A server that hangs is not waited for longer than was said, and then works again.
TEST(session_store_faults, a_server_that_hangs_is_known_in_time) {
    redis_server server;
    client by{server.url()};
    session_store sessions{by, "web"};
    auto const id = [&] {  // the first calls may find a busy machine
        session_store patient{by, "web", {.command_timeout = 10s}};
        return patient.create("ada", {{"a", "1"}});
    }();
    ASSERT_TRUE(eventually([&] { return ending_of([&] { sessions.get(id, "a"); }).reason == std::nullopt; }));
    server.stop();
    for (int i = 0; i < 3; ++i) {
        auto const from = std::chrono::steady_clock::now();
        EXPECT_EQ(ending_of([&] { sessions.get(id, "a"); }).reason, errc::unavailable);
        EXPECT_EQ(ending_of([&] { sessions.read(id); }).reason, errc::unavailable);
        EXPECT_LT(std::chrono::steady_clock::now() - from, 1s) << "100 ms each, on a busy machine a little more";
    }
    server.cont();
    EXPECT_TRUE(eventually([&] { return ending_of([&] { sessions.get(id, "a"); }).reason == std::nullopt; }));
}

// The client's clock, by which it guesses the server's at first, may be wrong by far.
TEST(session_store_faults, changes_sessions_of_a_server_whose_clock_is_another) {
    for (auto const by : {-24h, 24h}) {
        clock_file clock;
        redis_server server{{.clock = &clock}};
        clock.step(by);
        client near{server.url()};
        session_store here{near, "web", {.command_timeout = 10s}};
        auto const id = here.create("ada");
        EXPECT_EQ(here.update(id, {.set = {{"a", "1"}}}), session_outcome::updated);
        auto const fresh = here.rotate(id);
        ASSERT_TRUE(fresh);
        EXPECT_EQ(here.get(*fresh, "a"), "1");
        EXPECT_TRUE(here.destroy(*fresh));
    }
}

}  // namespace
}  // namespace lockstep::test
