// Values as the server keeps them. Whatever the bytes are:
//   - they are decoded, or refused with a conversion_error;
//   - what was decoded is the same after it was encoded and decoded again.

#include <lockstep/json.hpp>

#include "support/fuzz.hpp"

#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <variant>
#include <vector>

namespace {

using namespace lockstep;

struct line {
    std::string article;
    std::uint32_t count = 0;
    std::optional<double> price;
    bool operator==(line const&) const = default;
};
BOOST_DESCRIBE_STRUCT(line, (), (article, count, price))

enum class state { open, paid };
BOOST_DESCRIBE_ENUM(state, open, paid)

struct order {
    std::int64_t id = 0;
    state is = state::open;
    std::vector<line> lines;
    std::map<std::string, std::string> labels;
    std::tuple<bool, std::int8_t> flags;
    bool operator==(order const&) const = default;
};
BOOST_DESCRIBE_STRUCT(order, (), (id, is, lines, labels, flags))

template <class T>
bool is_nan(T const& value) {
    if constexpr (std::floating_point<T>) return std::isnan(value);
    return false;
}

template <class T>
void check(std::string_view bytes) {
    try {
        T const value = codec<T>::decode(bytes);
        T const again = codec<T>::decode(codec<T>::encode(value));
        fuzz::require(value == again || is_nan(value), "a value is encoded as it was decoded", bytes);
    } catch (conversion_error const&) {
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    fuzz::exact_copy const copy{fuzz::text_of(data, size)};
    auto const bytes = copy.view();
    check<std::string>(bytes);
    check<std::vector<std::byte>>(bytes);
    check<std::int8_t>(bytes);
    check<std::uint16_t>(bytes);
    check<std::int64_t>(bytes);
    check<std::uint64_t>(bytes);
    check<float>(bytes);
    check<double>(bytes);
    check<bool>(bytes);
    check<order>(bytes);
    check<std::vector<std::optional<line>>>(bytes);
    return 0;
}
