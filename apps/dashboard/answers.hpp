// Answers in JSON, and what is read from questions in it.
#pragma once

#include "dashboard/http.hpp"

#include <boost/json.hpp>

#include <cstddef>
#include <exception>
#include <string>
#include <string_view>

namespace lockstep::dashboard {

inline constexpr std::size_t most_reason = 300;  // of whoever acts: the rest is left out

// Every text in it as UTF-8, whatever a name holds.
response as_response(boost::json::value value);
// What went wrong, as a status and its text.
response of_failure(std::exception const& failure);
// Empty when it is not there or is no text.
std::string member(boost::json::object const& of, std::string_view name);
// The name that an order means: `raw` if it has that, for names that are not UTF-8, else `name`.
std::string name_in(boost::json::object const& order);

}  // namespace lockstep::dashboard
