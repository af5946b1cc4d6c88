#pragma once

// Closes the clients on a user's execution context when that is destroyed: requests that wait there would otherwise keep their
// coroutines, and those their client, for ever; and sockets and timers must not outlive their context.

#include <boost/asio/execution_context.hpp>

#include <memory>
#include <mutex>
#include <vector>

namespace lockstep::detail {

class core;

class context_watch final : public boost::asio::execution_context::service {
public:
    using key_type = context_watch;
    static boost::asio::execution_context::id id;

    explicit context_watch(boost::asio::execution_context& context) : service(context) {}

    /// After the client has made what it needs of the context's services: they are shut down in the reverse order.
    void add(std::weak_ptr<core> client);

private:
    void shutdown() override;

    std::mutex mutex_;
    std::vector<std::weak_ptr<core>> clients_;
};

}  // namespace lockstep::detail
