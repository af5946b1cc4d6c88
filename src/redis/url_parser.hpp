#pragma once

/// The parser behind `parse_url` and `locate` (url.hpp), which knows where the URL came from and what follows from elsewhere.

#include <string_view>

#include "redis/url.hpp"

namespace lockstep::redis {

struct url_source {
    std::string_view name = "the URL";  ///< how an error calls it, "LOCKSTEP_URL" for example
    bool password_follows = false;      ///< the options bring a password: a user alone is fine in the URL
};

location parse_url(std::string_view url, url_source const& source);

}  // namespace lockstep::redis
