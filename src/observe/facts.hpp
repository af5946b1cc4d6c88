#pragma once

// What a server says of itself, read but not judged. Without sockets.

#include <lockstep/reply.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::observe {

/// Names and values, as INFO, CONFIG GET and SENTINEL MASTER have them.
class fields {
public:
    fields() = default;
    /// Lines of `name:value`: INFO and CLUSTER INFO.
    static fields of_lines(std::string_view text);
    /// A map, or the flat list that stands for one. Anything else: none.
    static fields of_pairs(reply_view pairs);

    bool empty() const noexcept { return values_.empty(); }
    bool has(std::string_view name) const noexcept { return values_.contains(name); }
    std::string text(std::string_view name) const;                    ///< empty: there is none
    std::optional<std::int64_t> number(std::string_view name) const;  ///< nothing: none, or no number
    std::int64_t number_or(std::string_view name, std::int64_t otherwise) const {
        return number(name).value_or(otherwise);
    }
    void set(std::string name, std::string value) { values_[std::move(name)] = std::move(value); }

private:
    std::map<std::string, std::string, std::less<>> values_;
};

/// One line of CLUSTER NODES.
struct cluster_member {
    std::string address;
    bool master = false;
    bool failed = false;   ///< most of the masters say so
    bool doubted = false;  ///< the one that was asked can't reach it
    bool cut_off = false;  ///< no link to it, though it is not held to have failed
    bool slots = false;    ///< it has some
    std::string id, master_id;
};
std::vector<cluster_member> read_members(std::string_view cluster_nodes);

/// `a=1,b=2` as in the line of a replica in INFO.
fields of_commas(std::string_view text);

/// The words of a text, separated by spaces.
std::vector<std::string> words_of(std::string_view text);

/// 1536 -> "1.5 kB". For people.
std::string bytes_text(std::int64_t bytes);

/// What is known of one server, when the rules look at it. What it did not say is empty.
struct node_facts {
    fields info;
    fields config;
    fields default_user;  ///< `flags`, of the user `default`
    std::string refusal;  ///< what it answered when something was to be written; empty: it was
    std::optional<std::chrono::milliseconds> clock_ahead;  ///< of this machine's
    std::chrono::milliseconds clock_error{0};
    std::vector<std::chrono::microseconds> round_trips;
    reply slow_log;
    std::string user;

    bool refused(std::string_view word) const { return refusal.substr(0, refusal.find(' ')) == word; }
};

/// What the rules must know of the client.
struct client_facts {
    bool allow_eviction = false;
    bool cluster = false;
    bool sentinel = false;
    int database = 0;
    std::chrono::milliseconds ttl{30'000};
    std::chrono::milliseconds keepalive_interval{3'000};
    std::chrono::milliseconds slow{100};
    std::string prefix = "lockstep";
};

}  // namespace lockstep::observe
