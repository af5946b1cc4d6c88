#include "lease/token.hpp"

#include "base/names.hpp"
#include "base/words.hpp"
#include "lease/kind.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <cstdint>

namespace lockstep::engine {
namespace {

constexpr std::string_view token_mark = "lockstep-lease-1";

}  // namespace

std::string write_token(lease_token const& token) {
    return fmt::format("{} {} {} {} {} {}", token_mark, token.kind->word, token.hold, token.ttl.count(), token.retention.count(),
                       base::encode_name(token.name));
}

lease_token read_token(std::string_view text) {
    auto const mark = base::cut(text, ' ');
    auto const* const kind = find_kind(base::cut(text, ' '));
    auto const hold = base::cut(text, ' ');
    auto const ttl = base::number_in<std::int64_t>(base::cut(text, ' '));
    auto const retention = base::number_in<std::int64_t>(base::cut(text, ' '));
    auto const name = base::decode_name(text);
    if (mark != token_mark || kind == nullptr || hold.empty() || !ttl || !retention || !name) {
        throw invalid_argument_error("this is no token of a detached lease; it must be the text that detach() returned");
    }
    return {kind, std::string{hold}, std::chrono::milliseconds{*ttl}, std::chrono::milliseconds{*retention}, *name};
}

}  // namespace lockstep::engine
