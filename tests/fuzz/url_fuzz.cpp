// URLs of servers. Whatever the text is:
//   - it is read, or refused with an invalid_argument_error;
//   - a password that is planted in it is shown by no error, and by redact_url only where the URL means something else by it: a host, a user or a path.

#include <lockstep/options.hpp>

#include "redis/url.hpp"

#include "support/fuzz.hpp"

#include <optional>

namespace {

using namespace lockstep;
using fuzz::require;

constexpr std::string_view secret = "S3KR1T";

struct outcome {
    std::optional<redis::location> read;
    std::string complaint;
};
outcome read(std::string const& url) {
    try {
        return {redis::parse_url(url), {}};
    } catch (invalid_argument_error const& problem) {
        return {{}, problem.what()};
    }
}

bool shows(std::string_view text) { return text.find(secret) != std::string_view::npos; }

void check_secret(std::string const& url) {
    auto const shown = redact_url(url);
    auto const result = read(url);
    bool const is_password = result.read && (shows(result.read->password) || shows(result.read->sentinel_password));
    require(!shows(shown) || (result.read && !is_password), "redact_url shows a password", url);
    require(!shows(result.complaint) || shows(shown), "an error shows a password", result.complaint);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    auto const input = fuzz::text_of(data, size);
    std::string const url{input};
    static_cast<void>(redact_url(url));
    if (auto const result = read(url); result.read) {
        for (auto const& endpoint : result.read->endpoints) require(!to_string(endpoint).empty(), "an endpoint has a text", url);
    }
    client_options options;
    options.url = url;
    static_cast<void>(fuzz::succeeds([&] { static_cast<void>(redis::locate(options, [](char const*) -> char const* { return nullptr; })); }));

    // A secret where a password belongs, with anything around it.
    auto const cut = input.find('|');
    if (cut == std::string_view::npos || shows(input)) return 0;
    auto const planted = std::string{input.substr(0, cut)}.append(secret).append(input.substr(cut + 1));
    for (auto const* const scheme : {"redis://u:", "redis://:", "rediss://u:", "unix://u:", "redis+sentinel://x:", "rediss+cluster://y:"}) {
        check_secret(scheme + planted + "@h:1/0");
    }
    if (planted.find('&') != std::string::npos) return 0;  // what follows is the value of another key
    check_secret("redis+sentinel://h1,h2/m?sentinel_password=" + planted);
    check_secret("redis://h?password=" + planted);
    return 0;
}
