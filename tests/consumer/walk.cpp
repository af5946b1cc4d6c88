// Walking a reply: over its elements, and not by a running index, which takes the square of their number.
#include <lockstep/reply.hpp>

#include <cstddef>

std::int64_t sum(lockstep::reply const& list) {
    std::int64_t all = list.empty() ? 0 : list[0].integer();
#ifdef BY_INDEX
    for (std::size_t i = 0; i < list.size(); ++i) all += list[i].integer();
#else
    for (auto const element : list.view()) all += element.integer();
#endif
    return all;
}
