#pragma once

// Ids and handles of sessions, which begin with a group (three hexadecimal digits): the keys of one group share a slot.
//
// An id, '<group><22 random characters>', opens a session to whoever has it. The server never sees one: there, and wherever somebody may read along, a
// session is known by its handle, '<group><SHA-256 of the id, 43 characters of the url-safe base64 alphabet>', from which nobody finds the id.

#include <string>
#include <string_view>

namespace lockstep::detail {

bool is_session_id(std::string_view text) noexcept;
bool is_session_handle(std::string_view text) noexcept;
std::string new_session_id(std::string_view group);
std::string session_handle_of(std::string_view id);

/// The same in every program, whatever it was compiled with.
std::string session_group_of(std::string_view user);
std::string any_session_group();

}  // namespace lockstep::detail
