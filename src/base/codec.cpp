#include <lockstep/codec.hpp>

namespace lockstep::detail {

void throw_not_decodable(std::string_view bytes, std::string_view what) {
    constexpr std::size_t shown = 40;
    std::string text = "'";
    for (char const c : bytes.substr(0, shown)) text += c >= ' ' && c <= '~' ? c : '?';
    text += bytes.size() > shown ? "...' is not " : "' is not ";
    throw conversion_error(text.append(what));
}

}  // namespace lockstep::detail
