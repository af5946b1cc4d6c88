// All that can be included without Boost. EXPECTED_VERSION is that of the package.
#include <lockstep/lockstep.hpp>

#if LOCKSTEP_VERSION < 100
#error "this is older than 0.1.0"
#endif
static_assert(std::string_view{LOCKSTEP_VERSION_STRING} == EXPECTED_VERSION);

int main() {}
