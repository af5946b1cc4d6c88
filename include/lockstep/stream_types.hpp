#pragma once

/// What `stream`, `consumer` and `durable_bus` speak of. Plain values.

#include <lockstep/codec.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

/// Names and values, in order. A name may come twice.
using stream_fields = std::vector<std::pair<std::string, std::string>>;

struct stream_entry {
    /// Where `add_value` keeps the value.
    static constexpr std::string_view payload_field = "data";

    std::string id;
    stream_fields fields{};

    /// The first of that name; null: none.
    std::string const* find(std::string_view name) const noexcept;
    /// The field "data". Throws `conversion_error` where there is none.
    std::string const& payload() const;
    /// That, decoded. Throws `conversion_error`.
    template <class T, codec_for<T> Codec = codec<T>>
    T as() const {
        return Codec::decode(payload());
    }
};

enum class trim {
    exactly,
    about,  ///< whole blocks only: a few more may stay; much cheaper
};

/// An entry that a consumer was given and has not acknowledged.
struct stream_pending {
    std::string id;
    std::string consumer;
    std::chrono::milliseconds idle{};  ///< since it was given or renewed
    std::int64_t deliveries = 0;
};

struct stream_pending_summary {
    std::int64_t count = 0;
    std::string first{};  ///< ids; empty: none
    std::string last{};
    std::map<std::string, std::int64_t> consumers{};  ///< those that have any
};

struct stream_claimed {
    std::string next;
    std::vector<stream_entry> entries{};
    std::vector<std::string> gone{};  ///< were pending, but are in the stream no more: acknowledged
};

struct stream_info {
    std::int64_t length = 0;
    std::int64_t added = 0;  ///< since ever
    std::int64_t groups = 0;
    std::string first{};  ///< ids; empty: none
    std::string last{};   ///< given out last, be the entry there or not
};

struct stream_group {
    std::string name;
    std::int64_t consumers = 0;
    std::int64_t pending = 0;
    std::string last_delivered{};
    std::optional<std::int64_t> lag{};  ///< entries not yet delivered; nothing: the server can't tell (after removals in the middle)
};

}  // namespace lockstep
