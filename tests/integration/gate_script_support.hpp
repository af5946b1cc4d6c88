// The scripts of broadcast events, latches and barriers, called one at a time on a server of the test's own, whose clock the test moves.
#pragma once

#include "scripts/all.hpp"
#include "session_support.hpp"
#include "support/clock_file.hpp"
#include "support/raw_client.hpp"
#include "support/redis_server.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::test {

// What a script said. `value` is a generation, or what is left of a latch's count, or the length of a lease.
struct gate_answer {
    std::string word{};  // or an error, whole
    std::int64_t value = 0, arrived = 0, look_again = 0, now = 0;
};

class gate_scripts {
public:
    static constexpr std::int64_t ttl = 10'000, retention = 3'600'000, hour = 3'600'000, ever = 9'999'999'999'999;
    using arguments = std::vector<std::string>;

    explicit gate_scripts(std::string const& kind) : key{"lockstep:{name}:" + kind} {
        connect("-");  // a connection without any subscription answers PING in another form
    }

    gate_answer call(scripts::script const& script, arguments const& given) {
        arguments line{"EVALSHA", std::string{script.sha1}, "1", key};
        line.insert(line.end(), given.begin(), given.end());
        auto said = commands.command(line);
        if (said.is_error() && said.text.starts_with("NOSCRIPT")) {
            line[0] = "EVAL";
            line[1] = script.text;
            said = commands.command(line);
        }
        if (said.is_error()) return {.word = said.text};
        gate_answer answer{.word = said.elements.at(0).text, .now = said.elements.back().integer};
        if (said.elements.size() > 2) answer.value = said.elements[1].integer;
        if (said.elements.size() > 3) answer.look_again = said.elements[said.elements.size() - 2].integer;
        if (said.elements.size() > 4) answer.arrived = said.elements[2].integer;
        return answer;
    }

    // From now on somebody hears what this client is told, or nobody does.
    void connect(std::string const& client) { listen("SUBSCRIBE", client); }
    void disconnect(std::string const& client) { listen("UNSUBSCRIBE", client); }
    // Clients that were told of this key since the last call, in order of their names.
    std::vector<std::string> told() {
        ear.send({"PING"});  // what was published before is answered before
        for (auto said = ear.read(); said.elements.at(0).text != "pong"; said = ear.read()) heard(said);
        std::vector<std::string> names;
        for (auto const& [client, times] : std::exchange(told_, {})) names.insert(names.end(), times, client);
        return names;
    }

    void pass(std::int64_t ms) { clock.step(std::chrono::milliseconds{ms}); }
    std::int64_t now() {
        auto const said = commands.must({"TIME"}).elements;
        return std::stoll(said.at(0).text) * 1000 + std::stoll(said.at(1).text) / 1000;
    }
    std::map<std::string, std::string> hash() {
        std::map<std::string, std::string> fields;
        auto const said = commands.must({"HGETALL", key}).elements;
        for (std::size_t i = 0; i + 1 < said.size(); i += 2) fields[said[i].text] = said[i + 1].text;
        return fields;
    }
    // What is remembered of sessions, in a hash of this kind.
    std::map<std::string, std::string> sessions() {
        if (commands.must({"TYPE", key}).text != "hash") return {};
        return hash();
    }
    // How many fields of more than one letter begin with this one: waiting clients c, sessions a, arrivals h.
    int entries(char letter) {
        int count = 0;
        for (auto const& [field, value] : hash()) count += field[0] == letter && field.size() > 1 ? 1 : 0;
        return count;
    }
    std::int64_t expires_in() { return commands.must({"PTTL", key}).integer; }
    bool exists() { return commands.must({"EXISTS", key}).integer == 1; }

    static std::string text(std::int64_t number) { return std::to_string(number); }

    clock_file clock{};
    redis_server server{{.clock = &clock}};
    raw_client commands{server.address()};
    raw_client ear{server.address()};
    std::string key;
    std::string channel = "lockstep:wake:";
    std::string rules = "500 " + text(retention) + ' ' + channel;

private:
    void listen(char const* command, std::string const& client) {
        ear.send({command, channel + client});
        for (auto said = ear.read(); said.elements.at(0).text == "message"; said = ear.read()) heard(said);
    }
    void heard(reply const& said) {
        if (said.elements.at(0).text == "message" && said.elements.at(2).text == '=' + key)
            ++told_[said.elements.at(1).text.substr(channel.size())];
    }

    std::map<std::string, std::size_t> told_;
};

class broadcast_scripts : public gate_scripts {
public:
    broadcast_scripts() : gate_scripts{"broadcast"} {}
    gate_answer set(std::string const& session, std::int64_t sequence, std::int64_t deadline = ever) {
        return call(scripts::broadcast_set, {session, text(sequence), text(deadline), rules});
    }
    gate_answer clear(std::string const& session, std::int64_t sequence, std::int64_t deadline = ever) {
        return call(scripts::broadcast_clear, {session, text(sequence), text(deadline), rules});
    }
    gate_answer wait(std::string const& hold, std::int64_t deadline = ever) {
        return call(scripts::broadcast_wait, {hold, "", text(deadline), rules});
    }
    gate_answer wait_again(std::string const& hold, std::int64_t seen, std::int64_t deadline = ever) {
        return call(scripts::broadcast_wait, {hold, text(seen), text(deadline), rules});
    }
    gate_answer leave(std::string const& hold) { return call(scripts::broadcast_leave, {hold, rules}); }
};

class latch_scripts : public gate_scripts {
public:
    latch_scripts() : gate_scripts{"latch"} {}
    gate_answer create(std::int64_t count, std::int64_t deadline = ever) {
        return call(scripts::latch_create, {text(count), text(deadline), rules});
    }
    gate_answer count_down(std::int64_t n, std::string const& session, std::int64_t sequence,
                           std::int64_t deadline = ever) {
        return call(scripts::latch_count_down, {text(n), session, text(sequence), text(deadline), rules});
    }
    gate_answer wait(std::string const& hold, std::int64_t deadline = ever) {
        return call(scripts::latch_wait, {hold, text(deadline), rules});
    }
    gate_answer leave(std::string const& hold) { return call(scripts::latch_leave, {hold, rules}); }
};

class barrier_scripts : public gate_scripts {
public:
    struct options {
        std::int64_t parties = 3;
        std::int64_t ttl = gate_scripts::ttl;
        std::int64_t deadline = ever;
        bool completion = false;
        bool dropping = false;
    };

    barrier_scripts() : gate_scripts{"barrier"} {}
    gate_answer arrive(std::string const& hold, std::int64_t generation) { return arrive(hold, generation, options{}); }
    gate_answer arrive(std::string const& hold, std::int64_t generation, options const& o) {
        return call(scripts::barrier_arrive, {hold, text(generation), text(o.parties), text(o.ttl), text(o.deadline),
                                              o.completion ? "1" : "0", o.dropping ? "1" : "0", rules});
    }
    gate_answer ask(std::string const& hold, std::int64_t generation) {
        return call(scripts::barrier_ask, {hold, text(generation), rules});
    }
    gate_answer renew(std::string const& hold, std::int64_t length = ttl) {
        return call(scripts::barrier_renew, {hold, text(length), rules});
    }
    gate_answer finish(std::string const& hold, std::int64_t generation, bool ok = true) {
        return call(scripts::barrier_finish, {hold, text(generation), ok ? "1" : "0", rules});
    }
    gate_answer withdraw(std::string const& hold, std::int64_t generation) {
        return call(scripts::barrier_withdraw, {hold, text(generation), rules});
    }
};

}  // namespace lockstep::test
