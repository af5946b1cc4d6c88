#include "core/core.hpp"

#include <lockstep/asio.hpp>

#include <utility>

namespace lockstep::detail {

client make_client_on(boost::asio::any_io_executor executor, std::function<bool()> running_here, client_options const& options) {
    return core_access::make(core::make(options, home_executor{std::move(executor), std::move(running_here)}));
}

}  // namespace lockstep::detail
