// One page that is kept up to date: server-sent events on a socket that a session has left to it.
//
// A page that reads slowly is not sent everything that it missed, but what is different when it reads again. One that reads nothing for
// `write_timeout` is dropped. It never keeps others waiting.
#pragma once

#include "dashboard/connection.hpp"
#include "dashboard/feed.hpp"
#include "dashboard/http.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace lockstep::dashboard {

// `head` is the response's; `seen` what the page had before (Last-Event-ID). `allowed` is asked now and then:
// a session may end before its pages do. `ended` is called once. What it returns ends it, on the I/O thread.
[[nodiscard]] std::function<void()> start_stream(std::unique_ptr<connection> socket, std::shared_ptr<feed> from, std::string head, std::string seen,
                                                 std::chrono::milliseconds write_timeout, std::function<bool()> allowed, std::function<void()> ended);

}  // namespace lockstep::dashboard
