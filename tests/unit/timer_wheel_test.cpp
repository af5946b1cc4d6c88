// A seed that failed is printed by SCOPED_TRACE; every run of these tests uses the same ones.
#include "base/timer_wheel.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

namespace lockstep::base {
namespace {

using namespace std::chrono_literals;
using time_point = timer_wheel::time_point;

time_point const start{1h + 1234567ns};

std::vector<timer_node*> expired(timer_wheel& wheel, time_point now) {
    std::vector<timer_node*> nodes;
    wheel.expire(now, [&nodes](timer_node& node) { nodes.push_back(&node); });
    return nodes;
}

TEST(timer_wheel, fires_at_the_due_time_and_not_before) {
    timer_wheel wheel{start};
    timer_node node;
    for (auto const after : {1ns, 3999999ns, 4000000ns, 4000001ns, 1000000000ns}) {
        wheel.insert(node, start + after);
        EXPECT_TRUE(expired(wheel, start + after - 1ns).empty());
        EXPECT_TRUE(node.linked());
        EXPECT_EQ(expired(wheel, start + after), std::vector{&node});
        EXPECT_FALSE(node.linked());
    }
}

TEST(timer_wheel, says_nothing_when_empty) {
    timer_wheel wheel{start};
    EXPECT_EQ(wheel.next_due(start), std::nullopt);
    timer_node node;
    wheel.insert(node, start + 1s);
    EXPECT_TRUE(wheel.next_due(start));
    wheel.remove(node);
    EXPECT_EQ(wheel.next_due(start), std::nullopt);
    wheel.remove(node);  // once more does nothing
}

TEST(timer_wheel, keeps_what_is_laps_away_and_does_not_wake_up_for_it) {
    timer_wheel wheel{start};
    timer_node far;
    timer_node farther;
    wheel.insert(far, start + 1h);
    wheel.insert(farther, start + 10h);
    auto const look = wheel.next_due(start);
    ASSERT_TRUE(look);
    EXPECT_GE(*look, start + 1h);
    EXPECT_LE(*look, start + 1h + 4ms);
    EXPECT_TRUE(expired(wheel, start + 59min).empty());
    EXPECT_EQ(expired(wheel, *look), std::vector{&far});
    EXPECT_EQ(expired(wheel, start + 100h), std::vector{&farther});
}

TEST(timer_wheel, takes_times_that_have_passed_and_the_end_of_time) {
    timer_wheel wheel{start};
    timer_node past;
    timer_node never;
    wheel.insert(never, time_point::max());
    EXPECT_EQ(wheel.next_due(start), time_point::max());
    wheel.insert(past, time_point{});
    EXPECT_EQ(wheel.next_due(start), start);
    EXPECT_EQ(expired(wheel, start), std::vector{&past});
    wheel.insert(past, start - 1h);
    EXPECT_EQ(expired(wheel, start - 1s), std::vector{&past}) << "a time before the last one is no harm";
    EXPECT_TRUE(never.linked());
}

TEST(timer_wheel, moves_a_node_that_is_inserted_again) {
    timer_wheel wheel{start};
    timer_node node;
    wheel.insert(node, start + 10ms);
    wheel.insert(node, start + 50ms);
    EXPECT_TRUE(expired(wheel, start + 49ms).empty());
    EXPECT_EQ(expired(wheel, start + 50ms).size(), 1U);
}

TEST(timer_wheel, lets_the_called_function_remove_destroy_and_insert) {
    timer_wheel wheel{start};
    timer_node first;
    timer_node removed;
    auto destroyed = std::make_unique<timer_node>();
    timer_node inserted;
    for (auto* const node : {&first, &removed, destroyed.get()}) wheel.insert(*node, start + 1ms);
    int calls = 0;
    wheel.expire(start + 1ms, [&](timer_node& node) {
        ++calls;
        EXPECT_EQ(&node, &first);
        EXPECT_FALSE(node.linked());
        wheel.remove(removed);
        destroyed.reset();
        wheel.insert(inserted, start + 1ms);
        wheel.insert(node, start);
    });
    EXPECT_EQ(calls, 1) << "what was inserted waits for the next call";
    EXPECT_LE(wheel.next_due(start + 1ms), start + 5ms);
    EXPECT_EQ(expired(wheel, start + 1ms).size(), 2U);
}

TEST(timer_wheel, loses_nothing_when_the_called_function_throws) {
    timer_wheel wheel{start};
    std::deque<timer_node> nodes(3);
    for (auto& node : nodes) wheel.insert(node, start + 1ms);
    EXPECT_THROW(wheel.expire(start + 1ms, [](timer_node&) { throw std::runtime_error("x"); }), std::runtime_error);
    EXPECT_EQ(wheel.next_due(start + 1ms), start + 1ms);
    EXPECT_EQ(expired(wheel, start + 1ms).size(), 2U);
}

TEST(timer_wheel, may_be_destroyed_before_its_nodes_or_after) {
    timer_node node;
    {
        timer_wheel wheel{start};
        wheel.insert(node, start + 1s);
        timer_node shorter_lived;
        wheel.insert(shorter_lived, start + 1s);
    }
    EXPECT_FALSE(node.linked());
}

// The same random operations on the wheel and on a multimap.
class model_run {
public:
    explicit model_run(unsigned seed) : random_(seed) {}

    void step() {
        switch (random_() % 8) {
            case 0:
            case 1:
            case 2:
            case 3: insert(nodes_[random_() % nodes_.size()]); break;
            case 4: remove(nodes_[random_() % nodes_.size()]); break;
            default: advance();
        }
        check_next_due();
    }

private:
    void insert(timer_node& node) {
        remove(node);
        static constexpr std::chrono::nanoseconds reach[] = {1ms, 10ms, 1s, 20s, 100s};
        auto const range = reach[random_() % 5].count();
        auto const due = now_ + std::chrono::nanoseconds{static_cast<std::int64_t>(random_()) % range - range / 8};
        wheel_.insert(node, due);
        places_[&node] = model_.emplace(due, &node);
    }

    void remove(timer_node& node) {
        wheel_.remove(node);
        if (auto const place = places_.find(&node); place != places_.end()) {
            model_.erase(place->second);
            places_.erase(place);
        }
    }

    void advance() {
        static constexpr std::chrono::nanoseconds step[] = {0ns, 500us, 4ms, 300ms, 40s};
        now_ += std::chrono::nanoseconds{static_cast<std::int64_t>(random_()) % (step[random_() % 5].count() + 1)};
        auto const due_before = static_cast<std::size_t>(std::distance(model_.begin(), model_.upper_bound(now_)));
        std::size_t calls = 0;
        std::size_t disturbed = 0;
        wheel_.expire(now_, [&](timer_node& node) {
            ++calls;
            ASSERT_TRUE(places_.contains(&node)) << "not in the wheel, or called twice";
            ASSERT_LE(node.due(), now_) << "called before its time";
            model_.erase(places_.at(&node));
            places_.erase(&node);
            if (random_() % 4 != 0) return;
            auto& other = nodes_[random_() % nodes_.size()];
            if (other.linked() && other.due() <= now_ && !inserted_now_.contains(&other)) ++disturbed;
            inserted_now_.erase(&other);
            if (random_() % 2 == 0) {
                remove(other);
            } else {
                insert(other);
                if (other.due() <= now_) inserted_now_.emplace(&other, 0);
            }
        });
        ASSERT_EQ(calls + disturbed, due_before) << "every due node is called, but for those taken away meanwhile";
        inserted_now_.clear();
    }

    void check_next_due() {
        auto const look = wheel_.next_due(now_);
        ASSERT_EQ(look.has_value(), !model_.empty());
        if (!look) return;
        ASSERT_GE(*look, now_);
        ASSERT_LE(*look, std::max(now_, model_.begin()->first + timer_wheel::resolution));
    }

    std::mt19937_64 random_;
    time_point now_ = start;
    std::vector<timer_node> nodes_ = std::vector<timer_node>(1 + random_() % 300);
    timer_wheel wheel_{start};
    std::multimap<time_point, timer_node*> model_;
    std::map<timer_node*, std::multimap<time_point, timer_node*>::iterator> places_;
    std::map<timer_node*, int> inserted_now_;
};

TEST(timer_wheel, agrees_with_a_multimap_over_random_operations) {
    for (unsigned seed = 1; seed <= 60; ++seed) {
        SCOPED_TRACE(seed);
        model_run run{seed};
        for (int i = 0; i < 3'000 && !testing::Test::HasFatalFailure(); ++i) run.step();
        if (testing::Test::HasFatalFailure()) return;
    }
}

}  // namespace
}  // namespace lockstep::base
