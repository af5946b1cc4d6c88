// One connection: reads requests, has them answered, writes the answers. Bounded in size and time.
#pragma once

#include "dashboard/connection.hpp"
#include "dashboard/connection_table.hpp"
#include "dashboard/feed.hpp"
#include "dashboard/router.hpp"
#include "dashboard/server.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <atomic>
#include <memory>

namespace lockstep::dashboard {

struct session_parts {
    server_options const& options;
    router& routes;
    std::shared_ptr<feed> news;
    connection_table& connections;
    std::atomic<std::size_t>& refused;  // connections too many that are told so just now
    connection::tls_context tls;        // null: plain HTTP
};

// On the I/O thread.
void start_session(boost::asio::ip::tcp::socket socket, std::shared_ptr<session_parts> parts);

}  // namespace lockstep::dashboard
