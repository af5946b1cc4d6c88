// Small forms of text that HTTP has: queries, authorities, addresses, and names that are not UTF-8.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::dashboard {

// "%2F" and its like. Nothing when a % is not followed by two digits. A + stays one.
std::optional<std::string> percent_decoded(std::string_view text);
std::string percent_encoded(std::string_view text);

// The value of `key` in a query "a=1&b=2", decoded; nothing when it is not there or is malformed.
std::optional<std::string> in_query(std::string_view query, std::string_view key);

// Names are bytes; JSON is UTF-8. Bytes that are not become \xNN, all else stays.
bool is_utf8(std::string_view text) noexcept;
std::string readable(std::string_view text);

// At most so many bytes of it, and no half of a character.
std::string_view beginning(std::string_view text, std::size_t most) noexcept;

// The host of a Host header or of an origin's authority, in lower case: without its port, [::1] with its brackets.
std::string host_of(std::string_view authority);
// A host and perhaps a port from 1 to 65535, as a Host header may have it (RFC 9112, 3.2): no user, no path, nothing else.
bool is_authority(std::string_view text) noexcept;

// What is counted as one client: an IPv4 address, or the /64 of an IPv6 address. Text that is neither, as it is.
std::string network_of(std::string_view address);

}  // namespace lockstep::dashboard
