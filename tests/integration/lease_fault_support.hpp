// What the fault tests of leases share: a holder in a process of its own, and the server's view of what is held.
#pragma once

#include "lease_support.hpp"
#include "support/child_process.hpp"
#include "support/holdable.hpp"
#include "support/program_path.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace lockstep::test {

/// What a loaded machine may add to any time that is promised.
constexpr std::chrono::milliseconds load_slack{1'500};

/// The kinds of which one hold excludes another: what is promised of one of them is promised of all.
inline auto exclusive_kinds() {
    return testing::Values(kind::mutex, kind::recursive_mutex, kind::writer, kind::permits);
}
inline std::string kind_name(testing::TestParamInfo<kind> const& of) { return name_of(of.param); }

/// tests/support/programs/holder.cpp
class holder_process {
public:
    holder_process(std::string const& what, std::string const& url, std::chrono::milliseconds ttl = 30s,
                   std::chrono::milliseconds window = 500ms)
        : process{
              {program_path("holder"), what, url, "name", std::to_string(ttl.count()), std::to_string(window.count())},
              {.capture_stderr = false}} {}
    holder_process(kind what, std::string const& url, std::chrono::milliseconds ttl = 30s,
                   std::chrono::milliseconds window = 500ms)
        : holder_process{name_of(what), url, ttl, window} {}

    void begin(std::string const& order) { process.write_line(order); }
    std::string answer(std::chrono::milliseconds timeout = 20s) {
        auto const line = process.read_line(timeout);
        if (!line) throw std::runtime_error{"the holder does not answer"};
        return *line;
    }
    std::string ask(std::string const& order) {
        begin(order);
        return answer();
    }
    /// The fence of its hold.
    std::uint64_t held(std::chrono::milliseconds timeout = 20s) {
        auto const said = answer(timeout);
        if (!said.starts_with("held ")) throw std::runtime_error{"the holder says " + said};
        return std::stoull(said.substr(5));
    }
    std::uint64_t acquire() {
        begin("acquire");
        return held();
    }

    child_process process;
};

/// What the server has written down of something that is held, whatever its kind: see lock_state.lua and pool_state.lua.
class record {
public:
    record(redis_server& server, std::string key) : server_{server}, key_{std::move(key)} {}

    int waiting() {
        return static_cast<int>(std::ranges::count_if(fields(), [](auto const& one) { return one.first[0] == 'q'; }));
    }
    /// Who waits longest; of one that has only just begun.
    std::string first_waiting() { return word(0, field("q1")); }
    /// By somebody, or offered to one.
    bool held() { return is_lock() ? !field("o").empty() : !field("n").empty(); }
    /// With several, the one that was first.
    std::string holder() { return is_lock() ? owner() : field("o1"); }
    bool held_by(std::string const& hold) { return is_lock() ? owner() == hold : !field("i" + hold).empty(); }
    bool offered() {
        return std::ranges::any_of(fields(), [](auto const& one) {
            return one.second == "offered" || one.second.find(" offered") != std::string::npos;
        });
    }
    /// How long the server will keep the hold or the offer that it has now; with several, the one that was first.
    std::chrono::milliseconds left() {
        auto const rest = time_left();
        if (!rest) throw std::runtime_error{key_ + " is not held"};
        return *rest;
    }
    /// All of it, to show when a test fails.
    std::string text() {
        std::string all;
        for (auto const& [name, value] : fields()) all += name + "=" + value + "; ";
        return all;
    }
    /// Nobody waits, and nothing is held but by the dead, until somebody looks.
    bool idle() {
        return (is_lock() ? time_left().value_or(0ms) <= 0ms : pool_numbers(server_, key_).holders == 0) && waiting() == 0;
    }

private:
    static std::string word(int index, std::string const& text) {
        std::istringstream words{text};
        std::string one;
        for (int i = 0; i <= index; ++i) {
            one.clear();
            words >> one;
        }
        return one;
    }
    bool is_lock() const { return key_.ends_with(":lock"); }
    std::string field(std::string const& name) { return server_.must({"HGET", key_, name}).text; }
    std::vector<std::pair<std::string, std::string>> fields() {
        auto const all = server_.must({"HGETALL", key_}).elements;
        std::vector<std::pair<std::string, std::string>> found;
        for (std::size_t i = 0; i + 1 < all.size(); i += 2) found.emplace_back(all[i].text, all[i + 1].text);
        return found;
    }
    std::string owner() {
        auto const found = field("o");
        return found == "*" ? field("p") : found;
    }
    /// Of one moment. Empty: it is not held.
    std::optional<std::chrono::milliseconds> time_left() {
        auto const all = fields();
        std::map<std::string, std::string> const state{all.begin(), all.end()};
        auto const text = [&](std::string const& name) {
            auto const found = state.find(name);
            return found == state.end() ? std::string{} : found->second;
        };
        std::int64_t end = 0;
        if (is_lock()) {
            if (text("o").empty()) return {};
            end = text("o") == "*" ? std::stoll(text("e")) : std::stoll(text("f")) / 1000 + std::stoll(text("t"));
        } else {
            if (text("n").empty()) return {};
            auto const hold = text("i" + text("o1"));
            auto const written = word(4, hold);
            end = written.empty() ? std::stoll(word(3, hold)) / 1000 + std::stoll(word(2, hold)) : std::stoll(written);
        }
        auto const time = server_.must({"TIME"}).elements;
        return std::chrono::milliseconds{end - std::stoll(time.at(0).text) * 1000 - std::stoll(time.at(1).text) / 1000};
    }

    redis_server& server_;
    std::string key_;
};

}  // namespace lockstep::test
