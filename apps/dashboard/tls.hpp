// The dashboard's own certificate.
#pragma once

#include <boost/asio/ssl/context.hpp>

#include <memory>
#include <string>

namespace lockstep::dashboard {

// Nothing when both are empty. Throws invalid_argument_error, which names the file: only one of them, unreadable, encrypted, not a pair.
[[nodiscard]] std::shared_ptr<boost::asio::ssl::context> make_tls_context(std::string const& certificate_file, std::string const& key_file);

}  // namespace lockstep::dashboard
