#pragma once

/// `shared_map`: named values that all programs read and change, each with a version.
///
///     lockstep::shared_map<int> stock{client, "stock"};
///     stock.set("apples", 12);
///     if (auto apples = stock.get("apples")) stock.compare_and_set("apples", apples->version, apples->value - 1);
///     stock.update("apples", [](std::optional<int> const& now) { return now.value_or(0) + 1; });
///     auto more = stock.wait_newer("apples", stock.get("apples")->version, 1min);          // nothing: they were not changed
///     stock.set_all({{"pears", 3}, {"plums", 7}});                   // in one step
///     for (auto const& [name, count] : stock.all()) std::cout << name << ": " << *count << '\n';
///     auto watch = stock.watch([](std::string const& name, auto const& now) { ... });
///
/// A field's version is that of the change which made it: versions grow over the whole map. One fence guards the whole map: a write with a smaller one
/// than was seen is refused, whatever field it is for. `all` and `get_all` see one moment. A write whose reply was lost counts once. Otherwise as
/// `shared_value`, also for failure and threads; a near cache: <lockstep/near_map.hpp>. A map is one key of one server: for up to some 100,000 fields; `all` reads them all.

#include <lockstep/client.hpp>
#include <lockstep/codec.hpp>
#include <lockstep/detail/shared_map.hpp>
#include <lockstep/task.hpp>
#include <lockstep/versioned.hpp>
#include <lockstep/watching.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

template <class T, class Codec = codec<T>>
class shared_map {
public:
    static_assert(codec_for<Codec, T>, "T needs a codec: see <lockstep/codec.hpp>, and <lockstep/json.hpp> for structs and containers");
    using result = std::optional<versioned<T>>;
    using content = std::map<std::string, versioned<T>, std::less<>>;

    /// Does not ask the server.
    shared_map(client& by, std::string_view name, shared_map_options const& options = {}) : raw_(by, name, options) {}

    /// Nothing: there is no such field.
    result get(std::string_view field, std::stop_token token = {}) const { return wait(async_get(field), std::move(token)); }
    task<result> async_get(std::string_view field) const { return only(raw_.read(std::vector{std::string{field}})); }
    /// Those of them that are there.
    content get_all(std::vector<std::string> fields, std::stop_token token = {}) const { return wait(async_get_all(std::move(fields)), std::move(token)); }
    task<content> async_get_all(std::vector<std::string> fields) const { return decoded(raw_.read(std::move(fields))); }
    content all(std::stop_token token = {}) const { return wait(async_all(), std::move(token)); }
    task<content> async_all() const { return decoded(raw_.read(std::nullopt)); }
    std::uint64_t size(std::stop_token token = {}) const { return wait(async_size(), std::move(token)); }
    task<std::uint64_t> async_size() const { return raw_.size(); }

    /// The version it got.
    std::uint64_t set(std::string_view field, T const& value, write_options how = {}, std::stop_token token = {}) {
        return wait(async_set(field, value, how), std::move(token));
    }
    task<std::uint64_t> async_set(std::string_view field, T const& value, write_options how = {}) {
        return version(raw_.change(one(field, Codec::encode(value), std::nullopt), how));
    }
    /// All in one step, under one version.
    std::uint64_t set_all(std::map<std::string, T> const& values, write_options how = {}, std::stop_token token = {}) {
        return wait(async_set_all(values, how), std::move(token));
    }
    task<std::uint64_t> async_set_all(std::map<std::string, T> const& values, write_options how = {}) {
        std::vector<detail::raw_shared_map::edit> edits;
        for (auto const& [field, value] : values) edits.push_back({.field = field, .bytes = Codec::encode(value)});
        return version(raw_.change(std::move(edits), how));
    }

    /// Only if `version` is what is there; 0: if there is no such field. Nothing: it is not.
    std::optional<std::uint64_t> compare_and_set(std::string_view field, std::uint64_t version, T const& value, write_options how = {},
                                                 std::stop_token token = {}) {
        return wait(async_compare_and_set(field, version, value, how), std::move(token));
    }
    task<std::optional<std::uint64_t>> async_compare_and_set(std::string_view field, std::uint64_t version, T const& value, write_options how = {}) {
        return version_if(raw_.change(one(field, Codec::encode(value), version), how));
    }

    /// Reads the field, calls `change` with what is there (a `std::optional<T> const&`) and writes the T that it returns; again if somebody was faster. A
    /// `change` that returns a `std::optional<T>` may return nothing: then nothing is written. Returns what is there afterwards.
    /// The blocking form calls it on this thread, the other on the client's I/O thread, where it must not block.
    template <class F>
    result update(std::string_view field, F change, write_options how = {}, std::stop_token token = {}) {
        raw_.require_blocking();
        for (detail::update_attempts attempts{raw_};; attempts.pause(token)) {
            auto const found = get(field, token);
            auto next = detail::apply_change<T>(change, found);
            if (!next) return found;
            if (auto const made = compare_and_set(field, found ? found->version : 0, *next, how, token)) return versioned<T>{*std::move(next), *made};
        }
    }
    template <class F>
    task<result> async_update(std::string_view field, F change, write_options how = {}) {
        return update_in_turns(raw_, std::string{field}, std::move(change), how);
    }

    /// False: there was none.
    bool erase(std::string_view field, write_options how = {}, std::stop_token token = {}) { return wait(async_erase(field, how), std::move(token)); }
    task<bool> async_erase(std::string_view field, write_options how = {}) { return was_there(raw_.change(one(field, std::nullopt, std::nullopt), how)); }
    /// How many there were.
    std::uint64_t clear(write_options how = {}, std::stop_token token = {}) { return wait(async_clear(how), std::move(token)); }
    task<std::uint64_t> async_clear(write_options how = {}) { return before(raw_.clear(how)); }

    /// Waits, by push, until the field has a value with a larger version than this one; at once if it has. An erased field has none. 0: any.
    /// Nothing: none came in that time; however short that is, it is looked once, which may take the `command_timeout`. To wait for a change of any field: `watch`.
    result wait_newer(std::string_view field, std::uint64_t version, std::chrono::milliseconds time, std::stop_token token = {}) const {
        return wait(async_wait_newer(field, version, time), std::move(token));
    }
    task<result> async_wait_newer(std::string_view field, std::uint64_t version, std::chrono::milliseconds time) const {
        return decoded(raw_.wait_newer(std::string{field}, version, time));
    }
    versioned<T> wait_newer(std::string_view field, std::uint64_t version, std::stop_token token = {}) const {
        return wait(async_wait_newer(field, version), std::move(token));
    }
    task<versioned<T>> async_wait_newer(std::string_view field, std::uint64_t version) const {
        return surely(raw_.wait_newer(std::string{field}, version, std::nullopt));
    }

    /// Calls the handler with each field that is there now, and then with each that changes (nothing: erased), by push, on the client's I/O
    /// thread: keep it short, never block there. A field's versions grow from call to call, except after a failover that lost the last writes: then it
    /// hears of what is left. Of changes that follow fast, or while the connection was lost, only the latest may be told; that the map's ttl ran out,
    /// only after the next change. In force on return; ends with what is returned.
    watching watch(std::function<void(std::string const&, result const&)> handler) const { return wait(async_watch(std::move(handler)), {}); }
    task<watching> async_watch(std::function<void(std::string const&, result const&)> handler) const {
        if (!handler) return raw_.watch({});
        return raw_.watch([handler = std::move(handler)](std::string const& field, std::optional<detail::raw_value> const& now) {
            if (!now) return handler(field, std::nullopt);
            handler(field, versioned<T>{Codec::decode(now->bytes), now->version});
        });
    }

private:
    using raw_outcome = detail::raw_shared_map::outcome;
    using raw_fields = detail::raw_shared_map::fields;

    template <class R>
    R wait(task<R> work, std::stop_token token) const {
        raw_.require_blocking();
        return sync_wait(std::move(work), std::move(token));
    }
    static std::vector<detail::raw_shared_map::edit> one(std::string_view field, std::optional<std::string> bytes, std::optional<std::uint64_t> expected) {
        std::vector<detail::raw_shared_map::edit> edits;
        edits.push_back({std::string{field}, std::move(bytes), expected});
        return edits;
    }
    static task<content> decoded(task<raw_fields> reading) {
        auto const found = co_await std::move(reading);
        content made;
        for (auto const& [field, one] : found) made.emplace(field, versioned<T>{Codec::decode(one.bytes), one.version});
        co_return made;
    }
    static task<result> only(task<raw_fields> reading) {
        auto const found = co_await std::move(reading);
        if (found.empty()) co_return std::nullopt;
        auto const& one = found.begin()->second;
        co_return versioned<T>{Codec::decode(one.bytes), one.version};
    }
    static task<result> decoded(task<std::optional<detail::raw_value>> waiting) {
        auto const found = co_await std::move(waiting);
        if (!found) co_return std::nullopt;
        co_return versioned<T>{Codec::decode(found->bytes), found->version};
    }
    static task<versioned<T>> surely(task<std::optional<detail::raw_value>> waiting) {
        auto const found = co_await std::move(waiting);
        co_return versioned<T>{Codec::decode(found->bytes), found->version};
    }
    template <class F>
    static task<result> update_in_turns(detail::raw_shared_map raw, std::string field, F change, write_options how) {
        detail::update_attempts attempts{raw};
        while (true) {
            auto reading = only(raw.read(std::vector{field}));
            auto const found = co_await std::move(reading);
            auto next = detail::apply_change<T>(change, found);
            if (!next) co_return found;
            auto writing = version_if(raw.change(one(field, Codec::encode(*next), found ? found->version : 0), how));
            auto const made = co_await std::move(writing);
            if (made) co_return versioned<T>{*std::move(next), *made};
            auto pausing = attempts.async_pause();
            co_await std::move(pausing);
        }
    }
    static task<std::uint64_t> version(task<raw_outcome> changing) {
        auto const made = co_await std::move(changing);
        co_return made.version;
    }
    static task<std::optional<std::uint64_t>> version_if(task<raw_outcome> changing) {
        auto const made = co_await std::move(changing);
        if (made.version == 0) co_return std::nullopt;
        co_return made.version;
    }
    static task<bool> was_there(task<raw_outcome> changing) {
        auto const made = co_await std::move(changing);
        co_return made.before != 0;
    }
    static task<std::uint64_t> before(task<raw_outcome> changing) {
        auto const made = co_await std::move(changing);
        co_return made.before;
    }

    detail::raw_shared_map raw_;
};

}  // namespace lockstep
