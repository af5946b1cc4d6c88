// The id of a session, with which whoever has it is the user, never reaches the server: not in a command, a key, the slow log, the append-only file or a message
// of client tracking.
#include <lockstep/session_store.hpp>

#include "state_support.hpp"
#include "support/file_content.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::test {
namespace {

using ids = std::vector<std::string>;

// All that a server writes down, or tells others, of what it is sent.
class listener_of_all {
public:
    explicit listener_of_all(redis_server& server) : server_(server), monitor_(server.connect()), invalidated_(server.connect()), tracking_(server.connect()) {
        server_.must({"CONFIG", "SET", "slowlog-log-slower-than", "0", "slowlog-max-len", "100000", "appendfsync", "always"});
        auto const id = invalidated_.must({"CLIENT", "ID"}).integer;
        invalidated_.must({"SUBSCRIBE", "__redis__:invalidate"});
        tracking_.must({"CLIENT", "TRACKING", "ON", "BCAST", "REDIRECT", std::to_string(id)});
        monitor_.must({"MONITOR"});
    }
    // By where it was found.
    std::vector<std::pair<std::string, std::string>> all() {
        std::vector<std::pair<std::string, std::string>> texts;
        for (int i = 0; server_.command({"SET", "mark " + std::to_string(i), ""}).is_error();) ++i;  // until it is a key of this node
        texts.emplace_back("SLOWLOG", describe(server_.must({"SLOWLOG", "GET", "-1"})));
        texts.emplace_back("KEYS", describe(server_.must({"KEYS", "*"})));
        texts.emplace_back("CLIENT LIST", server_.must({"CLIENT", "LIST"}).text);
        server_.must({"ECHO", "the end of MONITOR"});
        texts.emplace_back("MONITOR", "");
        do texts.back().second += monitor_.read().text + "\n";
        while (texts.back().second.find("the end of MONITOR") == std::string::npos);
        texts.emplace_back("tracking", "");
        do texts.back().second += describe(invalidated_.read()) + "\n";
        while (texts.back().second.find("mark ") == std::string::npos);
        auto const home = server_.must({"CONFIG", "GET", "dir"}).elements.at(1).text;
        texts.emplace_back("append-only file", "");
        for (auto const& file : std::filesystem::recursive_directory_iterator{home}) {
            if (file.path().string().find("appendonly") != std::string::npos && file.is_regular_file()) texts.back().second += file_content(file.path().string());
        }
        return texts;
    }

private:
    redis_server& server_;
    raw_client monitor_, invalidated_, tracking_;
};

// Every call there is, blocking and as a coroutine. Returns the ids that were used, among them some of no session.
ids use_all(session_store& sessions, client& by) {
    ids all{"000AAAAAAAAAAAAAAAAAAAAAA"};
    for (bool const is_coroutine : {false, true}) {
        auto const run = [&](auto const& blocking, auto const& coroutine) { return is_coroutine ? sync_wait(coroutine()) : blocking(); };
        auto const create = [&](std::string const& user) {
            all.push_back(run([&] { return sessions.create(user, {{"a", "1"}}); }, [&] { return sessions.async_create(user, {{"a", "1"}}); }));
            return all.back();
        };
        auto const id = create("ada"), other = create("ada");
        all.push_back(run([&] { return sessions.create_anonymous(); }, [&] { return sessions.async_create_anonymous(); }));
        auto const unknown = all.front(), visitor = all.back();
        for (auto const& of : {id, unknown}) {
            bool const is_there = of == id;
            EXPECT_EQ(run([&] { return sessions.get(of, "a"); }, [&] { return sessions.async_get(of, "a"); }).has_value(), is_there);
            EXPECT_EQ(run([&] { return sessions.read(of); }, [&] { return sessions.async_read(of); }).has_value(), is_there);
            EXPECT_EQ(run([&] { return sessions.touch(of); }, [&] { return sessions.async_touch(of); }), is_there);
            EXPECT_EQ(run([&] { return sessions.update(of, {.set = {{"b", "2"}}}); }, [&] { return sessions.async_update(of, {.set = {{"b", "2"}}}); }),
                      is_there ? session_outcome::updated : session_outcome::absent);
        }
        EXPECT_FALSE(run([&] { return sessions.rotate(unknown); }, [&] { return sessions.async_rotate(unknown); }));
        EXPECT_FALSE(run([&] { return sessions.destroy(unknown); }, [&] { return sessions.async_destroy(unknown); }));
        auto const handle = session_store::handle_of(id);
        EXPECT_TRUE(run([&] { return sessions.peek(handle); }, [&] { return sessions.async_peek(handle); }));
        EXPECT_FALSE(run([&] { return sessions.peek(id); }, [&] { return sessions.async_peek(id); })) << "an id is no handle";
        EXPECT_FALSE(run([&] { return sessions.destroy_handle(id); }, [&] { return sessions.async_destroy_handle(id); }));
        EXPECT_EQ(run([&] { return sessions.list("ada"); }, [&] { return sessions.async_list("ada"); }).size(), 2U);
        auto next = run([&] { return sessions.rotate(id); }, [&] { return sessions.async_rotate(id); });
        all.push_back(next.value());
        // In a Cluster some of these move to another slot.
        for (std::string const user : {"bob", "carol", "dave", "ada"}) {
            auto const from = all.back();
            next = run([&] { return sessions.rotate(from, user); }, [&] { return sessions.async_rotate(from, user); });
            all.push_back(next.value());
        }
        auto const known = run([&] { return sessions.rotate(visitor, "bob"); }, [&] { return sessions.async_rotate(visitor, "bob"); });
        all.push_back(known.value());
        EXPECT_TRUE(run([&] { return sessions.destroy(*known); }, [&] { return sessions.async_destroy(*known); }));
        auto const second = session_store::handle_of(other);
        EXPECT_TRUE(run([&] { return sessions.destroy_handle(second); }, [&] { return sessions.async_destroy_handle(second); }));
        EXPECT_EQ(run([&] { return sessions.destroy_all("ada"); }, [&] { return sessions.async_destroy_all("ada"); }), 1U);
    }
    by.close();
    return all;
}

void expect_none(ids const& all, listener_of_all& listener) {
    for (auto const& [where, text] : listener.all()) {
        for (auto const& id : all) EXPECT_EQ(text.find(id.substr(3)), std::string::npos) << where << " has an id: " << id;
    }
}
bool mentions_handle(ids const& all, listener_of_all& listener, std::string const& place) {
    for (auto const& [where, text] : listener.all()) {
        if (where == place && text.find(session_store::handle_of(all.at(1)).substr(3)) != std::string::npos) return true;
    }
    return false;
}

TEST(session_secrecy, no_id_reaches_the_server) {
    redis_server server{{.append_only = true}};
    listener_of_all listener{server};
    client by{{.url = server.url()}};
    session_store sessions{by, "web", {.command_timeout = std::chrono::seconds{10}}};
    auto const all = use_all(sessions, by);
    EXPECT_GT(all.size(), 15U);
    expect_none(all, listener);
}

TEST(session_secrecy, what_was_looked_through_is_where_sessions_are_seen) {
    redis_server server{{.append_only = true}};
    client by{{.url = server.url()}};
    session_store sessions{by, "web", {.command_timeout = std::chrono::seconds{10}}};
    for (auto const* const place : {"SLOWLOG", "KEYS", "MONITOR", "tracking", "append-only file"}) {
        listener_of_all listener{server};
        ids const all{"", sessions.create("ada")};
        EXPECT_TRUE(mentions_handle(all, listener, place)) << place;
    }
}

TEST(session_secrecy, no_id_reaches_a_node_of_a_cluster) {
    cluster nodes{{.replicas_per_master = 0, .config = {"appendonly yes"}}};
    std::vector<std::unique_ptr<listener_of_all>> listeners;
    for (std::size_t i = 0; i < nodes.size(); ++i) listeners.push_back(std::make_unique<listener_of_all>(nodes.node(i)));
    client by{{.url = nodes.url()}};
    session_store sessions{by, "web", {.command_timeout = std::chrono::seconds{10}}};
    auto const all = use_all(sessions, by);
    for (auto const& listener : listeners) expect_none(all, *listener);
}

}  // namespace
}  // namespace lockstep::test
