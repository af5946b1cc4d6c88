// What a web program does with sessions: log in, use, change, log out everywhere.
#include <lockstep/lockstep.hpp>
#include <lockstep/session_store.hpp>

#include <iostream>

int main() try {
    using namespace std::chrono_literals;
    lockstep::embedded_server const server;
    lockstep::client client{server.url()};
    lockstep::session_store sessions{client, "web", {.ttl = 30min}};

    auto const visitor = sessions.create_anonymous({{"cart", "17"}});
    auto const id = sessions.rotate(visitor, "ada").value();  // ada has logged in: what was known of the id before is worth nothing now
    std::cout << "the old id is " << (sessions.read(visitor) ? "valid" : "gone") << ", the cart has " << sessions.get(id, "cart").value() << '\n';
    sessions.update(id, {.set = {{"cart", "18"}, {"theme", "dark"}}});
    sessions.create("ada");  // on her phone
    std::cout << "ada has " << sessions.list("ada").size() << " sessions\n";
    std::cout << sessions.destroy_all("ada") << " of them were ended\n";
    return sessions.read(id) ? 1 : 0;
} catch (lockstep::error const& problem) {
    std::cerr << "session_store: " << problem.what() << '\n';
    return 1;
}
