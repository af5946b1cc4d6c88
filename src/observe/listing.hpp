#pragma once

// Which objects the index names (core/object_index.hpp). Their keys may be gone: whoever reads them finds out.

#include "observe/reader.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::observe {

struct listed_object {
    std::string key;             ///< with the prefix
    std::int64_t until_ms = 0;   ///< of one without a key of its own: when it leaves the list, by the server's clock
};

/// All of them, in no order, each once.
task<std::vector<listed_object>> read_index(reader from);

/// Of these keys those that the index names, without reading all of it.
task<std::vector<listed_object>> find_in_index(reader from, std::vector<std::string> keys);

}  // namespace lockstep::observe
