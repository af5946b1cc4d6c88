// A request and a response as the dashboard's own parts see them: without sockets, so that they can be tried without any.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::dashboard {

struct request {
    std::string method{};
    std::string path{};  // without the query
    std::string query{};
    std::string host{}, origin{}, session{}, authorization{}, content_type{}, fetch_site{}, etag{}, last_event{};
    std::string body{};
    std::string peer{};  // its address
};

struct response {
    unsigned status = 200;
    std::string type = "application/json";
    std::string body{};
    std::vector<std::pair<std::string, std::string>> headers{};
    std::string_view asset{};  // instead of the body: something that lives forever
    bool last = false;         // close the connection after it
};

// An error as the page and scripts read it: {"error": "..."}.
response refusal(unsigned status, std::string_view why);

// Carries the id of a session: a header, because browsers send cookies to every port of a host.
inline constexpr std::string_view session_header = "X-Lockstep-Session";

}  // namespace lockstep::dashboard
