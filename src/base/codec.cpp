#include <lockstep/codec.hpp>

namespace lockstep::detail {

void throw_not_decodable(std::string_view bytes, std::string_view what) {
    // Never the value itself: it may be a secret, and this goes into logs and into the reasons of failed jobs.
    throw conversion_error("a value of " + std::to_string(bytes.size()) + " bytes is not " + std::string{what});
}

}  // namespace lockstep::detail
