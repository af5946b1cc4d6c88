#pragma once

// Files that a client is configured with: passwords, keys and certificates.

#include <string>
#include <string_view>

namespace lockstep::redis {

/// Why it can't be read whenever a connection is made; empty if nothing is known against it. A FIFO would keep the I/O thread waiting for a writer.
std::string problem_of_file(std::string const& file);

/// For a file with a secret: logs a warning, once in this process, if others than its owner may read it.
void warn_if_exposed(std::string const& file, std::string_view description);

}  // namespace lockstep::redis
