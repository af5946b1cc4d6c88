// Listening to channels: one channel, a pattern, and what happens when the connection breaks.
#include <lockstep/lockstep.hpp>

#include <iostream>
#include <mutex>
#include <semaphore>
#include <string>

namespace {

// Handlers run on the client's I/O thread, so output is shared between it and main.
void say(std::string const& line) {
    static std::mutex mutex;
    std::lock_guard const guard{mutex};
    std::cout << line << '\n';
}

}  // namespace

int main() try {
    lockstep::embedded_server const server;
    lockstep::client client{server.url()};

    std::counting_semaphore<> heard{0};
    std::counting_semaphore<> back{0};
    auto const on_gap = [&back] {
        say("gap      the connection was lost and is back; messages may have been missed");
        back.release();
    };

    auto news = client.subscribe({
        .channel = "news",
        .handler =
            [&heard](lockstep::message const& message) {
                say("news     " + std::string{message.payload});
                heard.release();
            },
        .on_gap = on_gap,
    });
    auto orders = client.subscribe({
        .channel = "orders:*",
        .handler =
            [&heard](lockstep::message const& message) {
                say("pattern  " + std::string{message.payload} + " on " + std::string{message.channel});
                heard.release();
            },
        .kind = lockstep::subscription_kind::pattern,
        .on_gap = on_gap,
    });

    client.command("PUBLISH", "news", "it works");
    client.command("PUBLISH", "orders:7", "three books");
    heard.acquire();
    heard.acquire();

    // Break the connection that listens. The subscriptions come back by themselves, and on_gap tells.
    client.command("CLIENT", "KILL", "TYPE", "pubsub");
    back.acquire();
    back.acquire();
    client.command("PUBLISH", "news", "still there");
    client.command("PUBLISH", "orders:8", "a lamp");
    heard.acquire();
    heard.acquire();

    news.unsubscribe();  // from here on its handler does not run; `orders` ends with its object
} catch (lockstep::error const& problem) {
    std::cerr << "subscriptions: " << problem.what() << '\n';
    return 1;
}
