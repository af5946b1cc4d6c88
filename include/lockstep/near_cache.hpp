#pragma once

/// `near_cache`: shared values read without asking the server, which tells when they change.
///
///     lockstep::near_cache<config> cache{client};
///     auto current = cache.get("config");            // what lockstep::shared_value<config>{client, "config"} has; null: nothing
///     if (current) apply(current->value);
///
/// The first read of a name asks the server, which remembers that (RESP3 client tracking, on one more connection) and says when the value changes;
/// until then reads cost well under a microsecond and no command. Values are written with `shared_value`.
///
/// Not linearizable: a read may see the value as it was some moments ago, until the server's word has arrived, also right after a write of one's own
/// (`forget` the name then). Never older than `max_age`, and when the connection is lost all is forgotten: a lost connection is noticed
/// within the client's keepalive times. Use `shared_value::get` where that is too old.
///
/// Failure: only a read that is not answered here can fail, as `shared_value::get`; `unsuitable_server_error`: this user may not use CLIENT TRACKING.
/// Threads: everything may be called from any thread, `get` also where blocking is not allowed if the value is here. The object may be destroyed while
/// its tasks go on.

#include <lockstep/client.hpp>
#include <lockstep/codec.hpp>
#include <lockstep/detail/near_cache.hpp>
#include <lockstep/task.hpp>
#include <lockstep/versioned.hpp>

#include <memory>
#include <stop_token>
#include <string_view>
#include <utility>

namespace lockstep {

template <class T, class Codec = codec<T>>
class near_cache {
public:
    static_assert(codec_for<Codec, T>, "T needs a codec: see <lockstep/codec.hpp>, and <lockstep/json.hpp> for structs and containers");
    /// Shared by all who read it, so that a hit copies nothing.
    using result = std::shared_ptr<versioned<T> const>;

    explicit near_cache(client& by, near_cache_options const& options = {}) : raw_(by, options, &make) {}

    /// Null: there is no value of this name.
    result get(std::string_view name, std::stop_token token = {}) const {
        std::shared_ptr<void const> found;
        if (!raw_.hit(name, found)) {
            raw_.require_blocking();
            found = sync_wait(raw_.fetch(name), std::move(token));
        }
        return std::static_pointer_cast<versioned<T> const>(std::move(found));
    }
    task<result> async_get(std::string_view name) const {
        std::shared_ptr<void const> found;
        if (raw_.hit(name, found)) return ready(std::static_pointer_cast<versioned<T> const>(std::move(found)));
        return typed(raw_.fetch(name));
    }
    /// The next read asks the server.
    void forget(std::string_view name) const noexcept { raw_.forget(name); }
    near_cache_statistics statistics() const noexcept { return raw_.statistics(); }

private:
    static std::shared_ptr<void const> make(std::string_view bytes, std::uint64_t version) {
        return std::make_shared<versioned<T> const>(versioned<T>{Codec::decode(bytes), version});
    }
    static task<result> ready(result found) { co_return found; }
    static task<result> typed(task<std::shared_ptr<void const>> fetching) {
        auto found = co_await std::move(fetching);
        co_return std::static_pointer_cast<versioned<T> const>(std::move(found));
    }

    detail::raw_near_cache raw_;
};

}  // namespace lockstep
