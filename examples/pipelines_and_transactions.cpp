// Several commands at once: a pipeline, a transaction, and an optimistic update with WATCH.
#include <lockstep/lockstep.hpp>

#include <iostream>
#include <string>
#include <thread>
#include <vector>

namespace {

// Takes `amount` out of the stock unless too little is left. Reads, then writes only if nobody wrote meanwhile; else begins again.
bool take(lockstep::session& session, int amount) {
    for (;;) {
        session.command("WATCH", "stock");
        auto const stock = session.command<int>("GET", "stock");
        if (stock < amount) {
            session.command("UNWATCH");
            return false;
        }
        if (session.execute(lockstep::transaction{}.add("SET", "stock", stock - amount))) return true;
    }
}

}  // namespace

int main() try {
    lockstep::embedded_server const server;
    lockstep::client client{server.url()};

    // A pipeline: sent together, one reply for each, and an error is a reply like any other.
    auto const replies =
        client.execute(lockstep::pipeline{}.add("SET", "name", "lockstep").add("INCR", "name").add("STRLEN", "name"));
    for (auto const& reply : replies) {
        if (reply.is_error()) {
            std::cout << "pipeline     error: " << reply.text() << '\n';
        } else {
            std::cout << "pipeline     "
                      << (reply.is_text() ? std::string{reply.text()} : std::to_string(reply.integer())) << '\n';
        }
    }

    // A transaction: nobody's commands run between these.
    auto const done =
        client.execute(lockstep::transaction{}.add("INCR", "orders").add("LPUSH", "log", "one more order"));
    std::cout << "transaction  order " << done->front().as<long>() << '\n';

    // A command that the server refuses to queue: none of them runs.
    try {
        client.execute(lockstep::transaction{}.add("INCR", "orders").add("NO_SUCH_COMMAND"));
    } catch (lockstep::server_error const&) {
        std::cout << "transaction  refused as a whole, orders is still " << client.command<int>("GET", "orders")
                  << '\n';
    }

    // WATCH needs a connection of its own. Four threads compete for ten pieces, three at a time: three of them get theirs.
    client.command("SET", "stock", 10);
    std::vector<std::jthread> buyers;
    for (int i = 0; i != 4; ++i) {
        buyers.emplace_back([&client] {
            auto session = client.open_session();
            if (take(session, 3)) client.command("INCR", "sold");
        });
    }
    buyers.clear();  // joins
    std::cout << "watch        sold " << client.command<int>("GET", "sold") << " times, "
              << client.command<int>("GET", "stock") << " left\n";
} catch (lockstep::error const& problem) {
    std::cerr << "pipelines_and_transactions: " << problem.what() << '\n';
    return 1;
}
