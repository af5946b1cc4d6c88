#include "chaos_courier.hpp"

#include "chaos_guardian.hpp"
#include "chaos_names.hpp"

#include <lockstep/error.hpp>

#include <utility>

namespace lockstep::chaos {
namespace {

using namespace std::chrono_literals;

std::string numbered_lane(std::uint64_t process) { return "w" + std::to_string(process); }
std::string explain(error const& problem) { return problem.code().message() + ": " + problem.what(); }

}  // namespace

courier::courier(actor& self, client& by)
    : self_{self}, lane_{by, numbered("stealing", 0), self.about().who.substr(0, 2), {.half = self.one_in(2), .items = queue_options_of(numbered("stealing", 0))}} {
    for (std::uint64_t i = 0; i < queue_names; ++i) {
        auto const name = numbered("queue", i);
        queues_.emplace_back(by, name, queue_options_of(name));
    }
}

std::string courier::new_value() { return self_.about().who + "#" + std::to_string(++made_); }

// ---- in

void courier::enqueue() try {
    auto const which = self_.below(queues_.size());
    self_.turn_to(numbered("queue", which));
    if (self_.about().name == ordered_queue) return enqueue_some_in_order();
    auto value = new_value();
    if (which == 0 && self_.one_in(2)) value += self_.one_in(2) ? "@w" : "@k" + std::to_string(self_.below(2));
    self_.report("enqueue", value);
    auto const done = send(which, value);
    self_.about().n = done && done->is_new ? 1 : 0;
    self_.report(done ? "enqueued" : "refused", value);
} catch (cancelled_error const&) {
    self_.report("unknown", "cancelled");
} catch (indeterminate_error const&) {
    self_.report("unknown");
} catch (error const& problem) {
    self_.report("failed", explain(problem));
}

std::optional<enqueued> courier::send(std::size_t which, std::string const& value) {
    auto& into = queues_[which];
    if (which == 1) {
        if (self_.one_in(2)) return into.try_enqueue(value);
        second_thoughts const mind{self_.up_to(300)};
        return into.enqueue(value, {}, mind.token());
    }
    enqueue_options how;
    if (self_.one_in(4)) how.priority = static_cast<std::int32_t>(self_.below(3)) - 1;
    if (self_.one_in(6)) how.delay = self_.up_to(300);
    if (auto const at = value.find('@'); at != std::string::npos) how.key = std::string_view{value}.substr(at + 1);
    if (how.key == "w") how.key_window = 200ms;
    return into.enqueue(value, how);
}

void courier::enqueue_some_in_order() {
    std::vector<std::string> values;
    for (auto i = self_.one_in(4) ? 3 : 1; i > 0; --i) values.push_back(new_value());
    for (auto const& one : values) self_.report("enqueue", one);
    auto& into = queues_.back();
    if (values.size() == 1) {
        static_cast<void>(into.enqueue(values.front()));
    } else {
        static_cast<void>(into.enqueue_many(values));
    }
    self_.about().n = 1;
    for (auto const& one : values) self_.report("enqueued", one);
}

void courier::push() try {
    self_.turn_to(numbered("stealing", 0));
    auto const value = new_value();
    self_.report("enqueue", value);
    static_cast<void>(self_.one_in(3) ? lane_.push_to(numbered_lane(self_.below(5)), value) : lane_.push(value));
    self_.about().n = 1;
    self_.report("enqueued", value);
} catch (indeterminate_error const&) {
    self_.report("unknown");
} catch (error const& problem) {
    self_.report("failed", explain(problem));
}

// ---- out

void courier::take() try {
    if (self_.one_in(40)) return revive();
    auto const which = self_.below(queues_.size() - 1);
    self_.turn_to(numbered("queue", which));
    second_thoughts const mind{self_.one_in(6) ? std::optional{self_.up_to(60)} : std::nullopt};
    self_.report("take");
    auto got = queues_[which].dequeue(self_.up_to(self_.one_in(2) ? 10 : 200), mind.token());
    if (!got) return self_.report("none");
    handle(std::move(*got));
} catch (cancelled_error const&) {
    self_.report("none", "cancelled");
} catch (error const& problem) {
    self_.report("failed", explain(problem));
}

void courier::take_or_steal() try {
    self_.turn_to(numbered("stealing", 0));
    self_.report("take");
    auto got = lane_.dequeue(self_.up_to(self_.one_in(2) ? 10 : 200));
    if (!got) return self_.report("none");
    handle(std::move(*got));
} catch (error const& problem) {
    self_.report("failed", explain(problem));
}

void courier::take_in_order(std::stop_token const& told) {
    while (!told.stop_requested()) {
        self_.turn_to(std::string{ordered_queue});
        try {
            self_.report("take");
            handle(queues_.back().dequeue(told));
        } catch (cancelled_error const&) {
            self_.report("none", "cancelled");
        } catch (error const& problem) {
            self_.report("failed", explain(problem));
        }
    }
}

/// What died gets another chance.
void courier::revive() {
    self_.turn_to(std::string{mortal_queue});
    try {
        self_.about().n = queues_[1].requeue_dead();
        self_.report("revived");
    } catch (indeterminate_error const&) {
        self_.report("unknown");
    }
}

void courier::handle(item what) {
    self_.about().n = what.deliveries();
    self_.report("processed", what.value());
    guardian{self_}.guard(what);
    settle(std::move(what));
}

void courier::settle(item what) {
    auto const kind = self_.below(16);
    if (kind == 0) {
        auto const dropped = std::move(what);
        return self_.report("dropped");
    }
    bool is_done = false;
    try {
        if (kind % 8 == 1) what.extend(ttl_of(self_.about().name));
        if (kind < 3) {
            what.nack(self_.one_in(2) ? 0ms : self_.up_to(200));
            return self_.report("nacked");
        }
        is_done = true;
        self_.report("ack");
        what.ack();
        self_.report("acked");
    } catch (lease_lost_error const&) {
        self_.report(is_done ? "lost" : "late");
    } catch (indeterminate_error const&) {
        self_.report("unknown");
    }
}

}  // namespace lockstep::chaos
