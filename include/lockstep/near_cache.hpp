#pragma once

/// `near_cache`: shared values read without asking the server, which tells when they change.
///
///     lockstep::near_cache<config> cache{client};
///     auto current = cache.get("config");            // what lockstep::shared_value<config>{client, "config"} has; null: nothing
///     if (current) apply(current->value);
///
/// The first read of a name asks the server, which remembers that (RESP3 client tracking, on one more connection) and says when the value changes;
/// until then reads cost well under a microsecond and no command. Reads of the same name that miss at the same time share one question. Values are
/// written with `shared_value`. For fields of a map: `near_map`.
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

#include <optional>

namespace lockstep {

/// With `get(name)`, `async_get(name)`, `forget(name)` and `statistics()` of detail::near_reader.
template <class T, class Codec = codec<T>>
class near_cache : public detail::near_reader<T, Codec> {
public:
    explicit near_cache(client& by, near_cache_options const& options = {}) : detail::near_reader<T, Codec>(by, std::nullopt, options) {}
};

}  // namespace lockstep
