// The lock's scripts, called one at a time on a server of the test's own, whose clock the test moves.
#pragma once

#include "scripts/all.hpp"
#include "support/clock_file.hpp"
#include "support/raw_client.hpp"
#include "support/redis_server.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::test {

// What a script said, its numbers under the names its header gives them.
struct lock_answer {
    std::string
        word{};  // granted, queued, busy, late, gone, released, cancelled, renewed; or the first word of an error
    std::int64_t fence = 0, fences = 0, left = 0, now = 0, position = 0, heard = 0;
    std::string offered_to{};
    bool short_way = false;  // a bare number
};

class lock_scripts {
public:
    static constexpr std::int64_t ttl = 10'000, window = 500, retention = 3'600'000;
    static constexpr std::int64_t hour = 3'600'000, ever = 9'999'999'999'999;

    struct options {
        std::int64_t ttl = lock_scripts::ttl;
        std::int64_t deadline = ever;
        std::int64_t fences = 1;
        std::int64_t waiters = 100'000;
    };

    lock_answer acquire(std::string const& hold) { return acquire(hold, options{}); }
    lock_answer acquire(std::string const& hold, options const& o) {
        return parse(
            run(scripts::lock_acquire, {hold, text(o.ttl), text(o.deadline), text(o.fences), text(o.waiters), rules}),
            o);
    }
    lock_answer try_acquire(std::string const& hold) { return acquire(hold, {.waiters = 0}); }
    lock_answer claim(std::string const& hold, std::int64_t fences = 1) {
        return parse(run(scripts::lock_claim, {hold, text(ttl), text(fences), rules}));
    }
    lock_answer renew(std::string const& hold, std::int64_t length = ttl) {
        return parse(run(scripts::lock_renew, {hold, text(length), rules}));
    }
    lock_answer release(std::string const& hold) { return parse(run(scripts::lock_release, {hold, rules})); }
    lock_answer release_leaving(std::string const& hold) {
        return parse(run(scripts::lock_release, {hold, rules, "1"}));
    }
    lock_answer adopt(std::string const& token, std::string const& hold) {
        return parse(run(scripts::lock_adopt, {token, hold, text(ttl), rules}));
    }
    // With any arguments; the error's first word, or "".
    std::string error_of(scripts::script const& script, std::vector<std::string> const& arguments) {
        auto const said = run(script, arguments);
        return said.is_error() ? said.text.substr(0, said.text.find(' ')) : "";
    }

    // From now on somebody hears what this client is told, or nobody does.
    void connect(std::string const& client) { listen("SUBSCRIBE", client); }
    void disconnect(std::string const& client) { listen("UNSUBSCRIBE", client); }
    // Holds that were told since the last call, in order.
    std::vector<std::string> told() {
        ear.send({"PING"});  // what was published before is answered before
        for (auto said = ear.read(); said.elements.at(0).text != "pong"; said = ear.read())
            if (said.elements.at(0).text == "message") told_.push_back(said.elements.at(2).text);
        return std::exchange(told_, {});
    }

    void pass(std::int64_t ms) { clock.step(std::chrono::milliseconds{ms}); }
    std::map<std::string, std::string> hash() {
        std::map<std::string, std::string> fields;
        auto const said = commands.must({"HGETALL", key}).elements;
        for (std::size_t i = 0; i + 1 < said.size(); i += 2) fields[said[i].text] = said[i + 1].text;
        return fields;
    }
    // What is there of an owner and of waiters, by the first letters of its fields. A lock that nobody wants has none.
    std::string residue() {
        std::string found;
        for (auto const& [field, value] : hash())
            if (std::string_view{"opsedhlzgmqw"}.find(field[0]) != std::string_view::npos) found += field + ' ';
        return found;
    }
    // Whether first, last, neighbours, holes and the two ways to find a waiter agree; what is wrong, or "".
    std::string queue_damage() {
        auto const fields = hash();
        auto const number = [&](std::string const& field, std::int64_t otherwise) {
            auto const found = fields.find(field);
            return found == fields.end() ? otherwise : std::stoll(found->second);
        };
        std::int64_t entries = 0, ways = 0, walked = 0;
        for (auto const& [field, value] : fields) entries += field[0] == 'q' ? 1 : 0, ways += field[0] == 'w' ? 1 : 0;
        auto const first = number("h", 0), last = number("l", 0), holes = number("z", 0);
        std::int64_t before = 0;
        for (auto at = first; first != 0; ++walked) {
            auto const found = fields.find("q" + text(at));
            if (found == fields.end()) return "no ticket " + text(at);
            auto const& entry = found->second;
            auto const space = entry.find(' ');
            auto next = at + 1, previous = at - 1;
            if (space != std::string::npos) std::istringstream{entry.substr(space)} >> previous >> next;
            if (number("w" + entry.substr(0, space), -1) != at) return "no way to ticket " + text(at);
            if (at != first && previous != before) return "ticket " + text(at) + " has another before it";
            if (at == last && next != at + 1) return "the last has one behind it";
            if (at == last) {
                ++walked;
                break;
            }
            before = std::exchange(at, next);
        }
        if (walked != entries || walked != ways) return "walked " + text(walked) + " of " + text(entries);
        if (walked != 0 && last - first + 1 - holes != walked) return "holes are " + text(holes);
        return "";
    }

    static std::string text(std::int64_t number) { return std::to_string(number); }

    clock_file clock{};
    redis_server server{{.clock = &clock}};
    raw_client commands{server.address()};
    raw_client ear{server.address()};
    std::string key = "lockstep:{name}:lock";
    std::string channel = "lockstep:wake:";
    std::string rules = text(window) + ' ' + text(retention) + ' ' + channel;

private:
    reply run(scripts::script const& script, std::vector<std::string> const& arguments) {
        std::vector<std::string> line{"EVALSHA", std::string{script.sha1}, "1", key};
        line.insert(line.end(), arguments.begin(), arguments.end());
        auto said = commands.command(line);
        if (said.is_error() && said.text.starts_with("NOSCRIPT")) {
            line[0] = "EVAL";
            line[1] = script.text;
            said = commands.command(line);
        }
        return said;
    }

    void listen(char const* command, std::string const& client) {
        ear.send({command, channel + client});
        for (auto said = ear.read(); said.elements.at(0).text == "message"; said = ear.read())
            told_.push_back(said.elements.at(2).text);
    }

    static lock_answer parse(reply const& said) { return parse(said, options{}); }
    static lock_answer parse(reply const& said, options const& asked) {
        lock_answer answer;
        if (said.is_error()) {
            answer.word = said.text;
        } else if (said.type == reply::kind::integer) {
            answer.short_way = true;
            answer.word = said.integer == 1 ? "released" : "granted";
            if (said.integer != 1) {
                answer.fence = said.integer;
                answer.fences = asked.fences;
                answer.left = asked.ttl;
                answer.now = said.integer / 1000;
            }
        } else {
            auto const at = [&](std::size_t i) { return said.elements.at(i).integer; };
            answer.word = said.elements.at(0).text;
            if (answer.word == "granted")
                answer.fence = at(1), answer.fences = at(2), answer.left = at(3), answer.now = at(4);
            else if (answer.word == "queued")
                answer.position = at(1), answer.left = at(2), answer.now = at(3);
            else if (answer.word == "busy" || answer.word == "renewed")
                answer.left = at(1), answer.now = at(2);
            else
                answer.now = at(1);
            if (answer.word == "released") answer.offered_to = said.elements.at(2).text, answer.heard = at(3);
        }
        return answer;
    }

    std::vector<std::string> told_;
};

}  // namespace lockstep::test
