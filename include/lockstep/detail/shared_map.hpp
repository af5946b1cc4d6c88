#pragma once

// What `shared_map<T>` is without its T: bytes. Compiled in src/state/shared_map.cpp.

#include <lockstep/client.hpp>
#include <lockstep/detail/shared_value.hpp>
#include <lockstep/task.hpp>
#include <lockstep/versioned.hpp>
#include <lockstep/watching.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct shared_map_options {
    std::chrono::milliseconds ttl{0};                 ///< the whole map is gone when it was not changed for so long; 0: it stays
    std::chrono::milliseconds retention{86'400'000};  ///< how long the fence and the versions are remembered after its fields are gone, 2 min at least
};

namespace detail {

class shared_map_state;

class raw_shared_map {
public:
    using fields = std::map<std::string, raw_value, std::less<>>;

    /// What happens to one field. Without bytes it is erased.
    struct edit {
        std::string field;
        std::optional<std::string> bytes{};
        std::optional<std::uint64_t> expected{};
    };
    struct outcome {
        std::uint64_t version = 0;  ///< 0: a field was not as expected, and nothing was changed
        std::uint64_t before = 0;   ///< how many of the fields were there
    };

    raw_shared_map(client& by, std::string_view name, shared_map_options const& options);

    task<fields> read(std::optional<std::vector<std::string>> names) const;  ///< nothing: all
    task<outcome> change(std::vector<edit> edits, write_options how) const;
    task<outcome> clear(write_options how) const;
    task<std::uint64_t> size() const;
    task<watching> watch(std::function<void(std::string const&, std::optional<raw_value> const&)> handler) const;
    /// Without a time: never nothing.
    task<std::optional<raw_value>> wait_newer(std::string field, std::uint64_t version, std::optional<std::chrono::milliseconds> time) const;
    void require_blocking() const;

private:
    friend class update_attempts;
    std::shared_ptr<shared_map_state const> state_;
};

}  // namespace detail
}  // namespace lockstep
