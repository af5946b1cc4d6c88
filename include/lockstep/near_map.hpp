#pragma once

/// `near_map`: fields of a shared map read without asking the server, which tells when the map changes.
///
///     lockstep::near_map<int> stock{client, "stock"};
///     if (auto apples = stock.get("apples")) std::cout << apples->value;   // what lockstep::shared_map<int>{client, "stock"} has; null: no such field
///
/// As `near_cache`, with fields instead of names, also for what a read may see, for failure and for threads. The server tells of the map, not of the field:
/// a change of any field makes it forget all of them. For maps that are read far more often than they are changed.

#include <lockstep/client.hpp>
#include <lockstep/codec.hpp>
#include <lockstep/detail/near_cache.hpp>

#include <string_view>

namespace lockstep {

/// With `get(field)`, `async_get(field)`, `forget(field)` and `statistics()` of detail::near_reader.
template <class T, class Codec = codec<T>>
class near_map : public detail::near_reader<T, Codec> {
public:
    /// Does not ask the server. Throws `invalid_argument_error` for a name that is not allowed.
    near_map(client& by, std::string_view name, near_cache_options const& options = {}) : detail::near_reader<T, Codec>(by, name, options) {}
};

}  // namespace lockstep
