#include <lockstep/trace.hpp>

#include "base/current_trace.hpp"

#include <algorithm>
#include <array>

namespace lockstep {
namespace {

thread_local std::array<char, 65> current{};

constexpr std::array<std::string_view, 9> words{"queued",    "acquired", "released", "lost",      "timed_out",
                                                "cancelled", "asked",    "passed",   "signalled"};

}  // namespace

std::string_view base::current_trace() noexcept { return current.data(); }

trace_scope::trace_scope(std::string_view id) noexcept {
    std::copy(current.begin(), current.end(), before_);
    *std::copy_n(id.begin(), std::min(id.size(), current.size() - 1), current.begin()) = '\0';
}

trace_scope::~trace_scope() { std::copy_n(before_, current.size(), current.begin()); }

std::string_view to_string(trace_what what) noexcept { return words[static_cast<std::size_t>(what)]; }

}  // namespace lockstep
