#include "sync/raw_loops.hpp"

#include "base/names.hpp"
#include "scripts/all.hpp"
#include "support/cpu.hpp"
#include "support/crew.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace lockstep::bench {
namespace {

/// Runs `once` until the time is over; `last` gives back what the final one still has.
template <class Once, class Last>
outcome repeat(assignment const& what, Once once, Last last) {
    outcome seen{.seconds = -wall_seconds(), .counts = {0}};
    for (double begun = wall_seconds(); begun < what.end;) {
        once();
        auto const now = wall_seconds();
        seen.waits.push_back(now - begun);
        begun = now;
    }
    last();
    seen.seconds += wall_seconds();
    seen.counts[0] = seen.waits.size();
    return seen;
}

/// What the lock says to one process, all of it encoded in advance: a hold may have the same id again once it was released.
class script_loop {
public:
    explicit script_loop(endpoint const& where) : connection_(where) {
        auto const client = fmt::format("raw{:09}", getpid());
        // As long as what the library sends.
        auto const hold = client + ".16777216000";
        constexpr auto rules = "500 3600000 lockstep:wake:";
        auto const key = base::key_name("lockstep", "bench:script", "lock");
        auto const call = [&](scripts::script const& script, auto... arguments) {
            return encoded({"EVALSHA", script.sha1, "1", key, hold, arguments...});
        };
        acquire_ = call(scripts::lock_acquire, "30000", "9000000000000", "129", "100000", rules);
        claim_ = call(scripts::lock_claim, "30000", "129", rules);
        release_ = call(scripts::lock_release, rules);
        both_ = release_ + acquire_;
        connection_.command({"HELLO", "3"});
        connection_.send(encoded({"SUBSCRIBE", "lockstep:wake:" + client}));
        expect(connection_.receive().front() == '>');
    }

    void take() {
        bool told = false;
        bool const had_it = std::exchange(held_, true);
        connection_.send(had_it ? both_ : acquire_);
        if (had_it) reply(told);
        if (auto const said = reply(told); said.front() == ':' || said.find("granted") != std::string_view::npos)
            return;
        if (!told) expect(connection_.receive().front() == '>');
        connection_.send(claim_);
        expect(reply(told).find("granted") != std::string_view::npos);
    }
    void ping() {
        bool told = false;
        connection_.send(ping_);
        reply(told);
    }
    void leave() {
        if (!std::exchange(held_, false)) return;
        bool told = false;
        connection_.send(release_);
        reply(told);
    }

private:
    static void expect(bool right) {
        if (!right) throw std::runtime_error("the server said something else than expected");
    }
    std::string_view reply(bool& told) {
        for (;;) {
            auto const next = connection_.receive();
            expect(next.front() != '-');
            if (next.front() != '>') return next;
            told = true;
        }
    }

    raw_connection connection_;
    std::string acquire_;
    std::string claim_;
    std::string release_;
    std::string both_;
    std::string const ping_ = encoded({"PING"});
    bool held_ = false;
};

}  // namespace

void serve_token(endpoint const& where) {
    raw_connection connection{where};
    auto const take = encoded({"BLPOP", token_list, "0"});
    auto const leave = encoded({"RPUSH", token_list, "x"});
    auto const both = leave + take;
    serve_crew([&](assignment const& what) {
        bool held = false;
        return repeat(
            what,
            [&] {
                connection.send(held ? both : take);
                if (std::exchange(held, true)) connection.receive();
                if (connection.receive().front() != '*') throw std::runtime_error("no token came");
            },
            [&] {
                if (!held) return;
                connection.send(leave);
                connection.receive();
            });
    });
}

void serve_script_relay(endpoint const& where) {
    script_loop loop{where};
    serve_turns([&](std::size_t times) {
        std::vector<turn> turns;
        while (times-- != 0) {
            loop.take();
            auto const acquired = wall_seconds();
            for (int i = 0; i != 20; ++i) loop.ping();
            turns.push_back({acquired, wall_seconds()});
            loop.leave();
            std::this_thread::sleep_for(std::chrono::microseconds{200});
        }
        return turns;
    });
}

void serve_scripts(endpoint const& where) {
    script_loop loop{where};
    serve_crew([&](assignment const& what) {
        return repeat(
            what, [&] { loop.take(); }, [&] { loop.leave(); });
    });
}

}  // namespace lockstep::bench
