#pragma once

/// `stream`: entries in the order in which they were added, kept at the server until they are trimmed.
///
///     lockstep::stream orders{client, "orders", {.max_length = 1'000'000}};
///     auto id = orders.add({{"customer", "7"}, {"item", "book"}});     // fields
///     orders.add_value(order{7, "book"});                              // any type with a codec; <lockstep/json.hpp> for structs
///     for (auto const& entry : orders.range()) std::cout << entry.id << '\n';
///
/// The commands of Redis streams, typed; who wants work to be done by a group of processes uses `consumer`, which does all of reading,
/// acknowledging, retrying and taking over. The key is `<prefix>:{<name>}:stream`, or any other: `lockstep::stream{client, lockstep::key{"events"}}` is a stream that
/// other programs made (<lockstep/key.hpp>). It does not expire: trim it, or `remove_all`.
///
/// `range`, `read` and those that list come in replies of 4 MiB at most (half of `max_reply_bytes`, if that is less), however large the entries are. Where one entry is larger
/// than `max_reply_bytes` they throw `protocol_error`, which names it. `read_group`, `read_pending`, `claim` and `auto_claim` bring up to `count` entries in one reply, on a
/// connection of their own; if that is too large they end in `protocol_error`, no other request does, and the entries are pending.
///
/// An add counts once: when its reply is lost it is sent again, and the server knows it by the caller's session and number. It is
/// tried for a minute at most, also where `command_timeout` is longer: the server does not remember it for ever. Whatever else may run twice is
/// sent again too. Not so `read_group`, `claim` and `auto_claim`: a second one would return other entries. When their reply is lost they end in
/// `indeterminate_error`, and what they gave is among this consumer's pending entries (`read_pending`).
///
/// Failure: `invalid_argument_error` (bad ids, counts or names; an id that is not above the last one; nothing was written), `indeterminate_error`
/// (an add may have been added, once), `server_error` with prefix NOGROUP where the group does not exist, and what every request throws.
/// In a coroutine, name fields before the call (`stream_fields const what{...}`): g++ 12 miscompiles braces inside `co_await`.
///
/// Threads: everything may be called from any thread. A read that waits has a connection of its own, which is kept for the next one.

#include <lockstep/client.hpp>
#include <lockstep/codec.hpp>
#include <lockstep/key.hpp>
#include <lockstep/stream_types.hpp>
#include <lockstep/task.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace lockstep {

namespace detail {
struct stream_state;
}

struct stream_options {
    std::int64_t max_length = 0;  ///< each add drops the oldest beyond about so many; 0: none
    bool exact = false;           ///< exactly so many: costs the server more
};
static_assert(std::is_trivially_destructible_v<stream_options>);

class stream {
public:
    using milliseconds = std::chrono::milliseconds;
    using entries = std::vector<stream_entry>;
    using ids = std::vector<std::string>;

    /// Does not ask the server.
    stream(client& by, std::string_view name, stream_options options = {});
    /// A stream that other programs made, or may use.
    stream(client& by, lockstep::key const& at, stream_options options = {});
    explicit stream(std::shared_ptr<detail::stream_state> state) noexcept : state_(std::move(state)) {}

    std::string const& name() const noexcept;
    std::string const& key() const noexcept;
    /// Where consumers put what they gave up.
    stream dead_letters() const;

    /// The new entry's id. `id`: "*" (the server's choice), "<ms>-<number>", "<ms>-*" or "<ms>".
    std::string add(stream_fields fields, std::string_view id = "*");
    task<std::string> async_add(stream_fields fields, std::string_view id = "*");
    /// In one field, "data": what `stream_entry::as<T>` reads.
    template <class T, codec_for<T> Codec = codec<T>>
    std::string add_value(T const& value, std::string_view id = "*") {
        return add({{std::string{stream_entry::payload_field}, Codec::encode(value)}}, id);
    }
    template <class T, codec_for<T> Codec = codec<T>>
    task<std::string> async_add_value(T const& value, std::string_view id = "*") {
        return async_add({{std::string{stream_entry::payload_field}, Codec::encode(value)}}, id);
    }
    /// Up to 10,000 in one round trip, all or none, side by side in the stream. Their ids.
    ids add_all(std::vector<stream_fields> all);
    task<ids> async_add_all(std::vector<stream_fields> all);

    std::int64_t length() const;
    task<std::int64_t> async_length() const;
    /// Both ends included, "(" before an id excludes it. `count` 0: all.
    entries range(std::string_view from = "-", std::string_view to = "+", std::size_t count = 0) const;
    task<entries> async_range(std::string_view from = "-", std::string_view to = "+", std::size_t count = 0) const;
    entries reverse_range(std::string_view from = "+", std::string_view to = "-", std::size_t count = 0) const;
    task<entries> async_reverse_range(std::string_view from = "+", std::string_view to = "-", std::size_t count = 0) const;

    /// How many were dropped.
    std::int64_t trim_to_length(std::int64_t length, trim how = trim::exactly);
    task<std::int64_t> async_trim_to_length(std::int64_t length, trim how = trim::exactly);
    /// Drops what is older than that id.
    std::int64_t trim_to_id(std::string_view id, trim how = trim::exactly);
    task<std::int64_t> async_trim_to_id(std::string_view id, trim how = trim::exactly);
    /// How many there were of them.
    std::int64_t remove(ids which);
    task<std::int64_t> async_remove(ids which);
    /// The stream with its groups; not its dead letters. False: there was none.
    bool remove_all();
    task<bool> async_remove_all();

    /// What comes after `after` ("$": what is added from now on). Waits for the first up to `wait`; none: an empty list.
    entries read(std::string_view after, std::size_t count = 100, milliseconds wait = {}, std::stop_token token = {}) const;
    task<entries> async_read(std::string_view after, std::size_t count = 100, milliseconds wait = {}) const;

    /// False: it was there. `start`: "0" (all that is in the stream) or "$" (what is added from now on), or an id. Makes the stream too.
    bool create_group(std::string_view group, std::string_view start = "0");
    task<bool> async_create_group(std::string_view group, std::string_view start = "0");
    bool destroy_group(std::string_view group);
    task<bool> async_destroy_group(std::string_view group);

    /// New entries for this consumer; they are pending for it until they are acknowledged. `wait` as in `read`.
    entries read_group(std::string_view group, std::string_view consumer, std::size_t count = 100, milliseconds wait = {}, std::stop_token token = {});
    task<entries> async_read_group(std::string_view group, std::string_view consumer, std::size_t count = 100, milliseconds wait = {});
    /// What is pending for this consumer already, after that id. Entries that were trimmed away have no fields. Counts as a delivery.
    entries read_pending(std::string_view group, std::string_view consumer, std::string_view after = "0", std::size_t count = 100);
    task<entries> async_read_pending(std::string_view group, std::string_view consumer, std::string_view after = "0", std::size_t count = 100);
    /// How many of them were pending.
    std::int64_t acknowledge(std::string_view group, ids which);
    task<std::int64_t> async_acknowledge(std::string_view group, ids which);

    stream_pending_summary pending(std::string_view group) const;
    task<stream_pending_summary> async_pending(std::string_view group) const;
    /// One by one, of one consumer or ("") of all, idle for at least so long.
    std::vector<stream_pending> pending_entries(std::string_view group, std::size_t count = 100, std::string_view consumer = {},
                                                milliseconds idle = {}, std::string_view from = "-") const;
    task<std::vector<stream_pending>> async_pending_entries(std::string_view group, std::size_t count = 100, std::string_view consumer = {},
                                                            milliseconds idle = {}, std::string_view from = "-") const;
    /// Those of them that are idle for at least so long become this consumer's.
    entries claim(std::string_view group, std::string_view consumer, milliseconds idle, ids which);
    task<entries> async_claim(std::string_view group, std::string_view consumer, milliseconds idle, ids which);
    /// Looks for such from `cursor` on, a bounded stretch; `next` is where to go on, "0-0" at the end.
    stream_claimed auto_claim(std::string_view group, std::string_view consumer, milliseconds idle, std::string_view cursor = "0-0", std::size_t count = 100);
    task<stream_claimed> async_auto_claim(std::string_view group, std::string_view consumer, milliseconds idle, std::string_view cursor = "0-0",
                                          std::size_t count = 100);

    /// Nothing: there is no such stream.
    std::optional<stream_info> info() const;
    task<std::optional<stream_info>> async_info() const;
    std::vector<stream_group> groups() const;
    task<std::vector<stream_group>> async_groups() const;

private:
    template <class T>
    T wait(task<T> work, std::stop_token token = {}) const;

    std::shared_ptr<detail::stream_state> state_;
};

}  // namespace lockstep
