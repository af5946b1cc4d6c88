#pragma once

/// Deadlines for very many waiters: a hashed timing wheel of 4096 slots, 4 ms each, one lap in 16.4 s.
///
/// Nearly every deadline is removed before it is due (the reply came), so insert and remove are a few pointer writes and
/// allocate nothing; a heap would pay log n for each. Nodes belong to others, mostly coroutine frames. A node due in tick t
/// waits in slot t mod 4096; those of a later lap stay there until it is their turn.
///
/// A removed node does not clear its slot's bit: the bit says "maybe". Whoever looks at an empty slot clears it, once.
/// Each slot keeps the earliest tick ever put in since it was last looked through, so that a slot which holds only later
/// laps wakes nobody.
///
/// A wheel takes about 100 kB: one for each I/O thread, not one for each object. Not for use by several threads at once.

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

namespace lockstep::base {

class timer_wheel;

struct timer_link {
    timer_link* prev = nullptr;
    timer_link* next = nullptr;
};

/// Derive from it or hold it as a member. Goes out of its wheel by itself when it is destroyed.
class timer_node : private timer_link {
public:
    timer_node() = default;
    timer_node(timer_node const&) = delete;
    timer_node& operator=(timer_node const&) = delete;
    ~timer_node() { unlink(); }

    /// True from insert() until it is removed or handed to expire()'s function.
    bool linked() const noexcept { return next != nullptr; }
    std::chrono::steady_clock::time_point due() const noexcept { return due_; }
    /// For a node that knows its time before it knows its wheel: `insert(node, node.due())` later.
    void preset_due(std::chrono::steady_clock::time_point due) noexcept { due_ = due; }

private:
    friend class timer_wheel;

    void unlink() noexcept {
        if (next == nullptr) return;
        prev->next = next;
        next->prev = prev;
        prev = next = nullptr;
    }

    std::chrono::steady_clock::time_point due_{};
};

class timer_wheel {
public:
    using clock = std::chrono::steady_clock;
    using time_point = clock::time_point;
    static constexpr std::size_t slots = 4096;
    static constexpr std::chrono::milliseconds resolution{4};

    explicit timer_wheel(time_point start = clock::now()) noexcept : cursor_(tick_of(start)) {
        for (auto& slot : slots_) close(slot);
        close(due_);
    }
    timer_wheel(timer_wheel const&) = delete;
    timer_wheel& operator=(timer_wheel const&) = delete;

    /// Nodes may outlive the wheel; they are unlinked here.
    ~timer_wheel() {
        for (auto& slot : slots_) drop_all(slot);
        drop_all(due_);
    }

    /// A node that is linked already is moved. A time that has passed is due at the next expire().
    void insert(timer_node& node, time_point due) noexcept {
        node.unlink();
        node.due_ = due;
        auto const tick = tick_of(due);
        auto const index = index_of(std::max(tick, cursor_));  // slots behind the cursor are not looked at again
        auto& slot = slots_[index];
        earliest_[index] = is_empty(slot) ? tick : std::min(earliest_[index], tick);
        append(slot, node);
        mark(index);
    }

    void remove(timer_node& node) noexcept { node.unlink(); }

    /// Calls f(node) for every node with due() <= now, each unlinked first; about in the order of their times.
    /// f may insert and remove any node, destroy nodes, throw (the rest is due at the next call), even call expire().
    /// What f inserts is not called before the next expire(), so a node that renews itself cannot hold it up.
    template <class Function>
    void expire(time_point now, Function&& f) {
        collect(now);
        while (!is_empty(due_)) {
            auto& node = static_cast<timer_node&>(*due_.next);
            node.unlink();
            f(node);
        }
    }

    /// When to call expire() next, at least `now`: at most 4 ms after the earliest due time, so that neighbours share a
    /// wake-up; sooner where a node was removed since. Nothing when the wheel is empty.
    std::optional<time_point> next_due(time_point now) noexcept {
        if (!is_empty(due_)) return now;
        std::optional<std::int64_t> soonest;
        for (std::size_t ahead = 0; (ahead = next_marked(cursor_, ahead)) < slots; ++ahead) {
            auto const index = index_of(cursor_ + static_cast<std::int64_t>(ahead));
            if (is_empty(slots_[index])) {
                unmark(index);
                continue;
            }
            soonest = soonest ? std::min(*soonest, earliest_[index]) : earliest_[index];
            if (*soonest <= cursor_ + static_cast<std::int64_t>(ahead)) break;  // this lap: no later slot can be sooner
        }
        if (!soonest) return std::nullopt;
        return std::max(now, time_of(*soonest));
    }

private:
    // The first tick that is not before `time`: at the time of its tick every node of it is due.
    static std::int64_t tick_of(time_point time) noexcept {
        auto const since = time.time_since_epoch();
        return since / resolution + (since % resolution > clock::duration::zero() ? 1 : 0);
    }

    static time_point time_of(std::int64_t tick) noexcept {
        return tick > time_point::max().time_since_epoch() / resolution ? time_point::max()
                                                                        : time_point{tick * resolution};
    }

    static std::size_t index_of(std::int64_t tick) noexcept { return static_cast<std::uint64_t>(tick) % slots; }

    static void close(timer_link& list) noexcept { list.prev = list.next = &list; }
    static bool is_empty(timer_link const& list) noexcept { return list.next == &list; }

    static void append(timer_link& list, timer_node& node) noexcept {
        timer_link& link = node;
        link.prev = list.prev;
        link.next = &list;
        list.prev->next = &link;
        list.prev = &link;
    }

    static void drop_all(timer_link& list) noexcept {
        while (!is_empty(list)) static_cast<timer_node*>(list.next)->unlink();
    }

    // Moves what is due from its slots to `due_`, before any of it is called: then nothing that is called can disturb it.
    void collect(time_point now) noexcept {
        auto const last = std::max(cursor_, tick_of(now));
        auto const span = static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(cursor_);
        auto const count = span < slots ? static_cast<std::size_t>(span) + 1 : slots;
        for (std::size_t ahead = 0; (ahead = next_marked(cursor_, ahead)) < count; ++ahead) {
            auto const index = index_of(cursor_ + static_cast<std::int64_t>(ahead));
            if (is_empty(slots_[index])) {
                unmark(index);
            } else if (earliest_[index] <= last) {
                collect_slot(index, now);
            }
        }
        cursor_ = last;  // and not one further: its tick may hold nodes that are due a little after `now`
    }

    void collect_slot(std::size_t index, time_point now) noexcept {
        auto& slot = slots_[index];
        auto earliest = std::numeric_limits<std::int64_t>::max();
        for (auto* link = slot.next; link != &slot;) {
            auto& node = static_cast<timer_node&>(*std::exchange(link, link->next));
            if (node.due_ <= now) {
                node.unlink();
                append(due_, node);
            } else {
                earliest = std::min(earliest, tick_of(node.due_));
            }
        }
        earliest_[index] = earliest;
        if (is_empty(slot)) unmark(index);
    }

    void mark(std::size_t index) noexcept {
        marks_[index / 64] |= std::uint64_t{1} << index % 64;
        summary_ |= std::uint64_t{1} << index / 64;
    }

    void unmark(std::size_t index) noexcept {
        auto& word = marks_[index / 64];
        word &= ~(std::uint64_t{1} << index % 64);
        if (word == 0) summary_ &= ~(std::uint64_t{1} << index / 64);
    }

    // How many slots from `from` on, at least `ahead`, until one is marked; `slots` or more when there is none.
    std::size_t next_marked(std::int64_t from, std::size_t ahead) const noexcept {
        while (ahead < slots) {
            auto const index = index_of(from + static_cast<std::int64_t>(ahead));
            if (auto const here = marks_[index / 64] >> index % 64; here != 0) {
                return ahead + static_cast<std::size_t>(std::countr_zero(here));
            }
            ahead += 64 - index % 64;  // on to the next word with anything in it
            auto const word = (index / 64 + 1) % 64;
            auto const words = std::rotr(summary_, static_cast<int>(word));
            if (words == 0) return slots;
            ahead += 64 * static_cast<std::size_t>(std::countr_zero(words));
        }
        return ahead;
    }

    static_assert(slots == 64 * 64, "one summary word covers the marks");
    std::array<timer_link, slots> slots_;
    std::array<std::int64_t, slots> earliest_{};
    std::array<std::uint64_t, slots / 64> marks_{};
    std::uint64_t summary_ = 0;
    timer_link due_;       // collected, about to be called
    std::int64_t cursor_;  // no slot of an earlier tick holds anything of its lap
};

}  // namespace lockstep::base
