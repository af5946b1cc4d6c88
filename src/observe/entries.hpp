#pragma once

// Entries of streams that others write to: read in replies of limited size.

#include "observe/reader.hpp"

#include <functional>
#include <string>

namespace lockstep::observe {

/// Called with each entry, the newest first, until it returns false. Entries that are too large are passed over and noted, and so is a key that is no stream.
task<void> for_each_entry(reader from, std::string key, std::function<bool(std::string_view id, reply_view fields)> handler);

}  // namespace lockstep::observe
