#include "drain.hpp"

#include "support/chaos_names.hpp"
#include "support/eventually.hpp"

#include <lockstep/client.hpp>
#include <lockstep/consumer.hpp>
#include <lockstep/queue.hpp>
#include <lockstep/stream.hpp>
#include <lockstep/work_stealing_queue.hpp>

#include <chrono>
#include <string>

namespace lockstep::chaos {
namespace {

using namespace std::chrono_literals;

class drainer {
public:
    drainer(world& where, std::function<void(event)> const& report) : report_{report}, by_{{.url = where.url_for(0), .name = "end"}} {}

    void empty_queue(std::string const& name) {
        queue<std::string> from{by_, name, queue_options_of(name)};
        empty(from, [&](std::string const& value) { from.enqueue(value); });
    }

    void empty_lanes(std::string const& name) {
        work_stealing_queue<std::string> from{by_, name, "end", {.items = queue_options_of(name)}};
        empty(from, [&](std::string const& value) { from.push(value); });
    }

    void empty_stream(std::string const& name) {
        auto const handle = [&](delivery const& what) {
            auto const value = what.as<std::string>();
            say("processed", name, value, what.deliveries);
            say("handled", name, value);
        };
        consumer reading{by_, name, handle, {.group = stream_group, .idle_limit = 500ms, .max_deliveries = 0}};
        stream from{by_, name};
        // Not the lag: a failover may leave the server without it.
        auto const nothing_is_left = [&] {
            auto const about = from.info();
            auto const groups = from.groups();
            return about && !groups.empty() && groups.front().pending == 0 && groups.front().last_delivered == about->last;
        };
        if (!test::eventually(nothing_is_left, 30s)) say("left", name, "entries that cannot be had");
        reading.stop();
        from.remove_all();
    }

private:
    void say(std::string const& what, std::string const& name, std::string const& note = {}, std::int64_t n = 0) const {
        report_({.t = boot_ns(), .who = "end", .what = what, .name = name, .n = n, .note = note});
    }

    template <class From, class Put>
    void empty(From& from, Put const& put) const {
        auto const nothing_is_left = [&] {
            from.requeue_dead();
            while (take_one(from)) continue;
            auto const there = from.counts();
            return there.ready + there.delayed + there.held + there.dead == 0;
        };
        if (!test::eventually(nothing_is_left, 30s)) return say("left", from.name(), "items that cannot be had");
        for (int i = 0; i < 3; ++i) {
            auto const value = "end#" + std::to_string(i);
            say("enqueue", from.name(), value);
            put(value);
            say("enqueued", from.name(), value, 1);
        }
        for (int i = 0; i < 3; ++i) {
            if (!take_one(from)) say("left", from.name(), "an item that cannot be had");
        }
    }

    template <class From>
    bool take_one(From& from) const {
        say("take", from.name());
        auto got = from.dequeue(20ms);
        if (!got) return say("none", from.name()), false;
        say("processed", from.name(), got->value(), got->deliveries());
        say("ack", from.name());
        got->ack();
        say("acked", from.name());
        return true;
    }

    std::function<void(event)> const& report_;
    client by_;
};

}  // namespace

void drain(world& where, std::function<void(event)> const& report) {
    drainer last{where, report};
    for (std::uint64_t i = 0; i < queue_names; ++i) last.empty_queue(numbered("queue", i));
    last.empty_lanes(numbered("stealing", 0));
    for (std::uint64_t i = 0; i < stream_names; ++i) last.empty_stream(numbered("stream", i));
}

}  // namespace lockstep::chaos
