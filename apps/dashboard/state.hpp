// What the pages have been told, and what is new since. Snapshots come in whole; out go only the parts that differ from what was there,
// so that a page with thousands of locks gets a few lines.
//
// Parts are known by a key that the page makes in the same way (page/src/keys.ts). What runs down by itself is sent as the time when it
// ends (`ends_at_ms`, `since_ms`, by the server's clock): a lease that only got older is not news, one that was renewed is.
// The owner of a hold is the id of a client, and each client is sent once.
//
// One thread at a time.
#pragma once

#include <lockstep/monitor.hpp>

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

namespace lockstep::dashboard {

class state {
public:
    state();

    // True: something is new.
    bool update(snapshot const& now);

    // Which state a page has when it has read message(). Another server's state is never taken for this one's.
    [[nodiscard]] std::string version() const { return epoch_ + '.' + std::to_string(version_); }
    // What a page needs that has `seen`: everything, when that is empty, from elsewhere or too long ago. The time is
    // not in it: whoever sends it puts in that of sending.
    [[nodiscard]] std::string message(std::string_view seen) const;
    [[nodiscard]] bool has_seen_all(std::string_view seen) const { return seen == version(); }

    // For the plots.
    [[nodiscard]] std::size_t holds() const noexcept { return holds_.items.size(); }
    [[nodiscard]] std::size_t stale() const noexcept { return stale_; }
    [[nodiscard]] std::size_t waiting() const noexcept { return waiting_; }
    [[nodiscard]] std::size_t objects() const noexcept { return objects_.items.size(); }
    [[nodiscard]] std::size_t clients() const noexcept { return connected_; }
    [[nodiscard]] std::int64_t at_ms() const noexcept { return at_ms_; }

private:
    template <class Value>
    struct item {
        Value value;
        std::string json;           // as it is sent
        std::uint64_t changed = 0;  // the version that brought it
        std::uint64_t seen = 0;     // the round in which it was last there
    };
    template <class Value>
    struct part {
        std::unordered_map<std::string, item<Value>> items;
        std::deque<std::pair<std::uint64_t, std::string>> gone;  // the version in which each went
    };

    template <class Value>
    void put(part<Value>& into, std::string key, Value value);
    template <class Value>
    void sweep(part<Value>& in);
    template <class Value>
    void write(std::string& out, std::string& gone, part<Value> const& of, char const* name, std::uint64_t since) const;

    std::string epoch_;
    std::uint64_t version_ = 0;
    std::uint64_t round_ = 0;
    std::uint64_t forgotten_ = 0;  // versions up to this one have lost some of what went
    bool news_ = false;
    std::int64_t at_ms_ = 0;
    std::vector<std::string> notes_;  // what could not be read
    std::size_t left_out_ = 0, stale_ = 0, waiting_ = 0, connected_ = 0;
    part<object_info> objects_;
    part<hold_info> holds_;
    part<wait_info> waits_;
    part<client_info> clients_;
};

}  // namespace lockstep::dashboard
