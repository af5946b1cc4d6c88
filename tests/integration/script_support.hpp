// A family of scripts that keep one hash with a queue of waiters, called one at a time on a server of the test's own, whose clock the
// test moves.
#pragma once

#include "scripts/all.hpp"
#include "support/clock_file.hpp"
#include "support/raw_client.hpp"
#include "support/redis_server.hpp"

#include <chrono>
#include <cstdint>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::test {

inline reply run_script(redis_server& server, scripts::script const& script, std::vector<std::string> const& keys,
                        std::vector<std::string> const& arguments) {
    std::vector<std::string> words{"EVAL", std::string{script.text}, std::to_string(keys.size())};
    words.insert(words.end(), keys.begin(), keys.end());
    words.insert(words.end(), arguments.begin(), arguments.end());
    return server.must(words);
}

// What a script said, its numbers under the names its header gives them.
struct script_answer {
    std::string word{};  // granted, queued, busy, late, gone, released, ...; or an error
    std::int64_t fence = 0, fences = 0, left = 0, now = 0, position = 0, heard = 0, old = 0, go_on_at = 0;
    std::string offered_to{};
    bool short_way = false;  // a bare number
    bool place_is_new = false, asks_again = false;
};

class script_bench {
public:
    static constexpr std::int64_t ttl = 10'000, window = 500, retention = 3'600'000;
    static constexpr std::int64_t hour = 3'600'000, ever = 9'999'999'999'999;

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
    // From now on only pass() and calls take time, and always the same: a busy machine makes nobody late.
    void keep_own_time() {
        clock.stop();
        call_takes_ = std::chrono::microseconds{130};
    }
    std::map<std::string, std::string> hash() {
        std::map<std::string, std::string> fields;
        auto const said = commands.must({"HGETALL", key}).elements;
        for (std::size_t i = 0; i + 1 < said.size(); i += 2) fields[said[i].text] = said[i + 1].text;
        return fields;
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
            auto const entry = words(found->second);
            auto next = at + 1, previous = at - 1;
            if (entry.size() > 2) previous = std::stoll(entry[1]), next = std::stoll(entry[2]);
            if (number("w" + entry.at(0), -1) != at) return "no way to ticket " + text(at);
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
    static std::vector<std::string> words(std::string const& line) {
        std::istringstream in{line};
        return {std::istream_iterator<std::string>{in}, {}};
    }

    clock_file clock{};
    redis_server server{{.clock = &clock}};
    raw_client commands{server.address()};
    raw_client ear{server.address()};
    std::string key = "lockstep:{name}:kind";
    std::string channel = "lockstep:wake:";
    std::string rules = text(window) + ' ' + text(retention) + ' ' + channel;

protected:
    reply run(scripts::script const& script, std::vector<std::string> const& arguments) {
        clock.step(call_takes_);
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

    // What was asked for is what a bare number leaves out.
    static script_answer parse(reply const& said, std::int64_t asked_ttl = ttl, std::int64_t asked_fences = 1) {
        script_answer answer;
        if (said.is_error()) {
            answer.word = said.text;
        } else if (said.type == reply::kind::integer) {
            answer.short_way = true;
            answer.word = said.integer == 1 ? "released" : "granted";
            if (said.integer != 1) {
                answer.fence = said.integer;
                answer.fences = asked_fences;
                answer.left = asked_ttl;
                answer.now = said.integer / 1000;
            }
        } else {
            auto const at = [&](std::size_t i) { return said.elements.at(i).integer; };
            answer.word = said.elements.at(0).text;
            if (answer.word == "granted")
                answer.fence = at(1), answer.fences = at(2), answer.left = at(3), answer.now = at(4);
            else if (answer.word == "queued")
                answer.position = at(1), answer.left = at(2), answer.now = at(3), answer.place_is_new = at(4) == 1;
            else if (answer.word == "changed")
                answer.fence = at(1), answer.left = at(2), answer.now = at(3);
            else if (answer.word == "busy" || answer.word == "renewed" || answer.word == "older")
                answer.left = at(1), answer.now = at(2);
            else if (answer.word == "resized" || answer.word == "cleared")
                answer.old = at(1), answer.now = at(2);
            else
                answer.now = at(1);
            if (answer.word == "added") answer.offered_to = said.elements.at(2).text;
            if (answer.word == "released") answer.offered_to = said.elements.at(2).text, answer.heard = at(3);
            if (answer.word == "resized" || answer.word == "created" || answer.word == "exists") answer.go_on_at = said.elements.back().integer;
            bool const gives_back = answer.word == "released" || answer.word == "cancelled" || answer.word == "gone";
            answer.asks_again = gives_back ? said.elements.size() > 4 && at(4) == 1
                                           : (answer.word == "queued" || answer.word == "busy") && answer.left == 0;
        }
        return answer;
    }

    // Of a command that sets something: larger than all before, unless one is given.
    std::string number(std::int64_t given) { return text(given != 0 ? given : ++last_number_); }

    // What is there of these fields, by their first letters.
    std::string fields_with(std::string_view letters) {
        std::string found;
        for (auto const& [field, value] : hash())
            if (letters.find(field[0]) != std::string_view::npos) found += field + ' ';
        return found;
    }

private:
    void listen(char const* command, std::string const& client) {
        ear.send({command, channel + client});
        for (auto said = ear.read(); said.elements.at(0).text == "message"; said = ear.read())
            told_.push_back(said.elements.at(2).text);
    }

    std::vector<std::string> told_;
    std::chrono::microseconds call_takes_{0};
    std::int64_t last_number_ = 0;
};

}  // namespace lockstep::test
