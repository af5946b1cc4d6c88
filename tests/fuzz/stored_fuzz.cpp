// What other clients store, as programs read it that look: registrations, objects, holds, statistics, history, audit, jobs, schedules, dead letters. A client
// is connected to a server of this file, which logs it in and answers everything else with the replies in the input, one after the other. The first byte
// chooses what is asked. Whatever the replies are, it ends in a value or in a lockstep::error.

#include "resp/encoder.hpp"
#include "resp/cursor.hpp"
#include "resp/parser.hpp"

#include "support/fuzz.hpp"

#include <lockstep/client.hpp>
#include <lockstep/election.hpp>
#include <lockstep/job_client.hpp>
#include <lockstep/monitor.hpp>
#include <lockstep/queue.hpp>
#include <lockstep/session_store.hpp>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

namespace {

using namespace lockstep;
using namespace std::chrono_literals;

constexpr resp::limits small{.max_bulk = 16'384, .max_elements = 4'096, .max_depth = 16, .max_message = 65'536, .max_line = 4'096};

/// Whole messages that are no pushes, which nobody asked for.
std::vector<std::string> messages_in(std::string_view bytes) {
    std::vector<std::string> all;
    resp::parser parser{small};
    while (!bytes.empty() && parser.parse(bytes) == resp::status::ready) {
        if (parser.message().type() != reply_type::push) all.emplace_back(bytes.substr(0, parser.consumed()));
        bytes.remove_prefix(parser.consumed());
    }
    return all;
}

class answering_server {
public:
    answering_server() : path_("/tmp/lockstep-fuzz-" + std::to_string(::getpid()) + ".sock"), listener_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        path_.copy(address.sun_path, sizeof address.sun_path - 1);
        ::unlink(path_.c_str());
        fuzz::require(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 && ::listen(listener_, 16) == 0, "the server listens", path_);
        thread_ = std::thread{[this] { serve(); }};
        thread_.detach();
    }
    std::string url() const { return "unix://" + path_; }
    void remove() const { ::unlink(path_.c_str()); }
    void answer_with(std::vector<std::string> replies) {
        std::lock_guard const guard{mutex_};
        replies_ = {replies.begin(), replies.end()};
    }

private:
    struct peer {
        int socket;
        std::string unread;
    };

    void serve() {
        std::list<peer> peers;
        for (;;) {
            std::vector<pollfd> wanted{{.fd = listener_, .events = POLLIN, .revents = 0}};
            for (auto const& one : peers) wanted.push_back({.fd = one.socket, .events = POLLIN, .revents = 0});
            if (::poll(wanted.data(), wanted.size(), -1) < 0) continue;
            std::size_t index = 1;
            for (auto at = peers.begin(); at != peers.end(); ++index) {
                bool const stays = wanted[index].revents == 0 || talk(*at);
                if (!stays) ::close(at->socket);
                at = stays ? std::next(at) : peers.erase(at);
            }
            if (wanted[0].revents != 0) {
                int const socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
                if (socket >= 0) peers.push_back({socket, {}});
            }
        }
    }

    bool talk(peer& with) {
        std::array<char, 65'536> room;
        auto const count = ::recv(with.socket, room.data(), room.size(), 0);
        if (count <= 0) return false;
        with.unread.append(room.data(), static_cast<std::size_t>(count));
        resp::parser parser;
        std::string answers;
        std::string_view unread = with.unread;
        while (!unread.empty() && parser.parse(unread) == resp::status::ready) {
            answers += answer(parser.message());
            unread.remove_prefix(parser.consumed());
        }
        with.unread.erase(0, with.unread.size() - unread.size());
        return ::send(with.socket, answers.data(), answers.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(answers.size());
    }

    std::string answer(reply_view request) {
        auto const command = request[0].text();
        if (command == "HELLO") return "%3\r\n+server\r\n+redis\r\n+version\r\n+7.2.0\r\n+proto\r\n:3\r\n";
        if (command == "INFO") return "$39\r\n# Memory\r\nmaxmemory_policy:noeviction\r\n\r\n";
        if (command == "PING" || command == "CLIENT" || command == "SELECT" || command == "SCRIPT") return "+OK\r\n";
        if (command == "SUBSCRIBE" || command == "SSUBSCRIBE" || command == "PSUBSCRIBE") {
            std::string all;
            for (resp::cursor rest{request, 1}; rest.left() != 0;) {
                std::string const channel{rest.next().text()};
                auto const kind = command == "SUBSCRIBE" ? "+subscribe" : command == "SSUBSCRIBE" ? "+ssubscribe" : "+psubscribe";
                all += std::string{">3\r\n"} + kind + "\r\n$" + std::to_string(channel.size()) + "\r\n" + channel + "\r\n:1\r\n";
            }
            return all;
        }
        std::lock_guard const guard{mutex_};
        if (replies_.empty()) return "-ERR that is all\r\n";
        auto next = std::move(replies_.front());
        replies_.pop_front();
        return next;
    }

    std::string path_;
    int listener_;
    std::thread thread_;
    std::mutex mutex_;
    std::list<std::string> replies_;
};

struct world {
    answering_server server;
    client reader{{.url = server.url(), .name = "fuzz", .connect_timeout = 2s, .command_timeout = 2s, .monitoring = false, .allow_eviction = true}};
    lockstep::monitor monitor{reader};
    job_client jobs{reader, "work"};
    queue<std::string> items{reader, "items"};
    session_store sessions{reader, "web"};
    election candidate{reader, "boss"};
};

void ask(world& in, std::size_t choice, std::string_view text) {
    switch (choice) {
        case 0: static_cast<void>(in.monitor.snapshot()); break;
        case 1: static_cast<void>(in.monitor.snapshot({.scan = true})); break;
        case 2: static_cast<void>(in.monitor.snapshot({.name = "orders"})); break;
        case 3: static_cast<void>(in.monitor.why("orders").text()); break;
        case 4: static_cast<void>(verify(in.monitor.history())); break;
        case 5: static_cast<void>(in.monitor.audit()); break;
        case 6: static_cast<void>(in.monitor.statistics()); break;
        case 7: static_cast<void>(in.monitor.changes("orders")); break;
        case 8: static_cast<void>(in.monitor.clients()); break;
        case 9: static_cast<void>(in.monitor.contention()); break;
        case 10: static_cast<void>(in.jobs.list("mail", job_state::failed)); break;
        case 11: static_cast<void>(in.jobs.find("mail/1")); break;
        case 12: static_cast<void>(in.jobs.flow_of("mail/1")); break;
        case 13: static_cast<void>(in.jobs.crons()); break;
        case 14: static_cast<void>(in.jobs.counts("mail")); break;
        case 15: static_cast<void>(in.items.dead_letters()); break;
        case 16: static_cast<void>(in.items.counts()); break;
        case 17: static_cast<void>(in.sessions.list("ada")); break;
        case 18: static_cast<void>(in.sessions.peek(text)); break;
        case 19: static_cast<void>(in.monitor.waiters()); break;
        case 20: static_cast<void>(in.candidate.leader()); break;
        default: static_cast<void>(in.jobs.types());
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    static world& all = *new world;  // never ended: threads run in it
    [[maybe_unused]] static int const registered = std::atexit([] { all.server.remove(); });
    auto input = fuzz::text_of(data, size);
    auto const choice = fuzz::take_choice(input, 22);
    all.server.answer_with(messages_in(input));
    fuzz::succeeds([&] { ask(all, choice, "a-handle-of-a-session"); });
    return 0;
}
