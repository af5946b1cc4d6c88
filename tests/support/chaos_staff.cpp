#include "chaos_staff.hpp"

#include "chaos_chronicler.hpp"
#include "chaos_courier.hpp"
#include "chaos_names.hpp"

#include <stop_token>
#include <utility>

namespace lockstep::chaos {

staff::staff(client& by, std::string const& referee, std::string const& who, std::uint64_t seed)
    : reader_{referee, who + ".s", seed}, reading_{read_stream(reader_, by, numbered("stream", 0))},
      taking_{[&by, referee, who, seed](std::stop_token const& told) {
          actor self{referee, who + ".q", seed + 1};
          courier{self, by}.take_in_order(told);
      }},
      working_{by, referee, who, seed + 2} {}

}  // namespace lockstep::chaos
