#pragma once

// What `near_cache<T>` and `near_map<T>` share; without its T it is compiled in src/state/near_cache.cpp.

#include <lockstep/client.hpp>
#include <lockstep/codec.hpp>
#include <lockstep/task.hpp>
#include <lockstep/versioned.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep {

struct near_cache_options {
    std::size_t max_entries = 10'000;           ///< values kept here, at least 16; those not used lately go first
    std::chrono::milliseconds max_age{60'000};  ///< none is older, whatever happens to the server and the network
};

struct near_cache_statistics {
    std::uint64_t hits = 0;           ///< answered here
    std::uint64_t misses = 0;         ///< asked of the server; a read that waits for another's answer is neither a hit nor a miss
    std::uint64_t invalidations = 0;  ///< values dropped because they changed, or may have
    std::uint64_t evictions = 0;      ///< values dropped for want of room
    std::size_t entries = 0;
};

namespace detail {

class near_cache_state;

class raw_near_cache {
public:
    /// Makes the value that is kept, of its bytes and its version.
    using maker = std::shared_ptr<void const> (*)(std::string_view bytes, std::uint64_t version);

    /// `map`: the fields of that map; nothing: values.
    raw_near_cache(client& by, std::optional<std::string_view> map, near_cache_options const& options, maker make);

    /// False: it is not here.
    bool hit(std::string_view name, std::shared_ptr<void const>& to) const;
    task<std::shared_ptr<void const>> fetch(std::string_view name) const;
    void forget(std::string_view name) const noexcept;
    near_cache_statistics statistics() const noexcept;
    void require_blocking() const;

private:
    std::shared_ptr<near_cache_state> state_;
};

template <class T, class Codec>
class near_reader {
public:
    static_assert(codec_for<Codec, T>, "T needs a codec: see <lockstep/codec.hpp>, and <lockstep/json.hpp> for structs and containers");
    /// Shared by all who read it, so that a hit copies nothing.
    using result = std::shared_ptr<versioned<T> const>;

    /// Null: there is no value of this name.
    result get(std::string_view name, std::stop_token token = {}) const {
        std::shared_ptr<void const> found;
        if (!raw_.hit(name, found)) {
            raw_.require_blocking();
            found = sync_wait(raw_.fetch(name), std::move(token));
        }
        return std::static_pointer_cast<versioned<T> const>(std::move(found));
    }
    task<result> async_get(std::string_view name) const { return look(raw_, std::string{name}); }
    /// The next read asks the server.
    void forget(std::string_view name) const noexcept { raw_.forget(name); }
    near_cache_statistics statistics() const noexcept { return raw_.statistics(); }

protected:
    near_reader(client& by, std::optional<std::string_view> map, near_cache_options const& options) : raw_(by, map, options, &make) {}

private:
    static std::shared_ptr<void const> make(std::string_view bytes, std::uint64_t version) {
        return std::make_shared<versioned<T> const>(versioned<T>{Codec::decode(bytes), version});
    }
    static task<result> look(raw_near_cache raw, std::string name) {
        std::shared_ptr<void const> found;
        if (!raw.hit(name, found)) {
            auto fetching = raw.fetch(name);
            found = co_await std::move(fetching);
        }
        co_return std::static_pointer_cast<versioned<T> const>(std::move(found));
    }

    raw_near_cache raw_;
};

}  // namespace detail
}  // namespace lockstep
