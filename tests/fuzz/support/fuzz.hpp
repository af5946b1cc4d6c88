// What the fuzz targets share. Each is one file, x_fuzz.cpp, whose head says what must hold.
#pragma once

#include <lockstep/error.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

namespace lockstep::fuzz {

inline void require(bool holds, char const* promise, std::string_view detail = {}) {
    if (holds) return;
    std::fprintf(stderr, "broken: %s\n  [%.*s]\n", promise, static_cast<int>(detail.size()), detail.data());
    std::abort();
}

/// Bytes in a block of exactly their size, so that reading beyond them is caught.
class exact_copy {
public:
    explicit exact_copy(std::string_view bytes) : data_(new char[bytes.size()]), size_(bytes.size()) { bytes.copy(data_.get(), size_); }
    std::string_view view() const { return {data_.get(), size_}; }

private:
    std::unique_ptr<char[]> data_;
    std::size_t size_;
};

inline std::string_view text_of(std::uint8_t const* data, std::size_t size) { return {reinterpret_cast<char const*>(data), size}; }

/// Takes the first byte as a number below `count`; 0 where there is none.
inline std::size_t take_choice(std::string_view& input, std::size_t count) {
    if (input.empty()) return 0;
    auto const choice = static_cast<unsigned char>(input.front()) % count;
    input.remove_prefix(1);
    return choice;
}

/// Takes what stands before the first line end.
inline std::string_view take_line(std::string_view& input) {
    auto const end = input.find('\n');
    auto const line = input.substr(0, end);
    input.remove_prefix(end == std::string_view::npos ? input.size() : end + 1);
    return line;
}

/// Calls it. Whatever it throws must be an error of ours; false if it threw.
template <class F>
bool succeeds(F const& call) {
    try {
        call();
        return true;
    } catch (error const&) {
        return false;
    }
}

}  // namespace lockstep::fuzz
