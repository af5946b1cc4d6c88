// Where the build put the helper programs and the clock shim.
#pragma once

#include <string>

namespace lockstep::test {

// The file `name` in the first of these directories that has it: LOCKSTEP_TEST_BIN in the environment, the directory of
// the same name compiled in, that of the running test. Throws std::runtime_error naming them when none does.
[[nodiscard]] std::string program_path(std::string const& name);

}  // namespace lockstep::test
