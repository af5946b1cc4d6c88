// What locks and pools of one permit promise alike: who waits, in which order, who is passed over, and what time, tokens and faults do
// to that. lock_script_test.cpp and pool_script*_test.cpp have what is their own.

#include "lock_script_support.hpp"
#include "pool_script_support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using lockstep::test::lock_scripts;
using lockstep::test::pool_scripts;
using lockstep::test::script_answer;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

class one_permit : public pool_scripts {
public:
    script_answer acquire(std::string const& hold) { return acquire(hold, options{}); }
    script_answer acquire(std::string const& hold, options how) {
        how.count = "1";
        return pool_scripts::acquire(hold, how);
    }
    script_answer try_acquire(std::string const& hold) { return acquire(hold, {.waiters = 0}); }
};

class whole_lock : public lock_scripts {
public:
    std::string damage() { return queue_damage(); }
};

// Clients a, b, c and d listen; nothing may be wrong with the queue in the end.
template <class Scripts>
class queue_script : public testing::Test {
protected:
    queue_script() {
        for (auto const* const client : {"a", "b", "c", "d"}) queue.connect(client);
    }
    ~queue_script() override { EXPECT_EQ(queue.damage(), ""); }

    // a.1 has it; then these wait for it, in order.
    void held_by_a_and_wanted_by(std::vector<std::string> const& holds) {
        ASSERT_EQ(queue.acquire("a.1").word, "granted");
        for (auto const& hold : holds) ASSERT_EQ(queue.acquire(hold).word, "queued");
    }

    Scripts queue;
};

struct kinds {
    template <class Scripts>
    static std::string GetName(int) {
        return std::is_base_of_v<lock_scripts, Scripts> ? "lock" : "pool";
    }
};
using both = testing::Types<whole_lock, one_permit>;
TYPED_TEST_SUITE(queue_script, both, kinds);

TYPED_TEST(queue_script, gives_the_same_grant_to_the_same_hold) {
    auto const first = this->queue.acquire("a.1");
    for (int i = 0; i < 2; ++i) {
        auto const again = this->queue.acquire("a.1");
        EXPECT_EQ(again.word, "granted");
        EXPECT_EQ(again.fence, first.fence);
        EXPECT_LE(again.left, this->queue.ttl);
        EXPECT_EQ(this->queue.acquire("b.1").word, "queued");  // the second time a.1 is kept in the long form
    }
    this->queue.release("a.1");
    auto const claimed = this->queue.claim("b.1");
    EXPECT_GT(claimed.fence, first.fence);
    EXPECT_EQ(this->queue.claim("b.1").fence, claimed.fence);
    EXPECT_EQ(this->queue.acquire("b.1").fence, claimed.fence);
    this->queue.release("b.1");
}

TYPED_TEST(queue_script, is_handed_on_in_order_by_an_offer_that_must_be_claimed) {
    this->held_by_a_and_wanted_by({"b.1", "c.1", "b.2"});
    EXPECT_EQ(this->queue.acquire("b.2").position, 3);
    auto fence = this->queue.acquire("a.1").fence;
    std::string owner = "a.1";
    for (auto const* const next : {"b.1", "c.1", "b.2"}) {
        auto const released = this->queue.release(owner);
        EXPECT_EQ(released.offered_to, next);
        EXPECT_EQ(released.heard, 1);
        EXPECT_THAT(this->queue.told(), ElementsAre(next));
        EXPECT_EQ(this->queue.renew(next).word, "gone") << "an offer is no lease";
        EXPECT_EQ(this->queue.adopt(next, "d.7").word, "gone");
        EXPECT_EQ(this->queue.try_acquire("d.1").word, "busy") << "nor is it free";
        auto const claimed = this->queue.claim(next);
        EXPECT_EQ(claimed.word, "granted");
        EXPECT_EQ(claimed.left, this->queue.ttl);
        EXPECT_GT(claimed.fence, fence);
        fence = claimed.fence;
        owner = next;
    }
    EXPECT_EQ(this->queue.release(owner).offered_to, "");
    EXPECT_EQ(this->queue.residue(), "");
}

TYPED_TEST(queue_script, frees_what_a_dead_holder_had_when_its_lease_is_over) {
    this->held_by_a_and_wanted_by({"b.1", "c.1"});
    auto const told = this->queue.acquire("b.1");
    EXPECT_LE(told.left, this->queue.ttl);
    this->queue.pass(told.left - 100);
    EXPECT_EQ(this->queue.acquire("b.1").word, "queued");
    this->queue.pass(100);
    EXPECT_EQ(this->queue.acquire("b.1").word, "granted");
    EXPECT_THAT(this->queue.told(), IsEmpty()) << "who asks need not be told";
    EXPECT_EQ(this->queue.acquire("a.1").word, "queued");
    this->queue.pass(this->queue.ttl);
    EXPECT_EQ(this->queue.acquire("a.1").word, "queued") << "looking again does not overtake";
    EXPECT_THAT(this->queue.told(), ElementsAre("c.1"));
}

TYPED_TEST(queue_script, lets_a_newcomer_pass_on_what_ran_out) {
    this->held_by_a_and_wanted_by({"a.2", "b.1"});
    this->queue.pass(this->queue.ttl);
    EXPECT_EQ(this->queue.acquire("c.1").word, "queued");
    EXPECT_THAT(this->queue.told(), ElementsAre("a.2")) << "who lost a lease is not suspect for that";
}

TYPED_TEST(queue_script, keeps_the_fence_and_moves_the_end_when_renewed) {
    auto const first = this->queue.acquire("a.1");
    for (int i = 0; i < 3; ++i) {
        this->queue.pass(this->queue.ttl - 1000);
        auto const renewed = this->queue.renew("a.1");
        EXPECT_EQ(renewed.word, "renewed");
        EXPECT_EQ(renewed.left, this->queue.ttl);
    }
    EXPECT_EQ(this->queue.acquire("b.1").word, "queued");
    EXPECT_EQ(this->queue.acquire("a.1").fence, first.fence);
    EXPECT_EQ(this->queue.renew("b.1").word, "gone");
    EXPECT_EQ(this->queue.renew("a.1", 500).word, "renewed") << "also to make it shorter";
    this->queue.pass(500);
    EXPECT_EQ(this->queue.acquire("b.1").word, "granted");
}

TYPED_TEST(queue_script, passes_over_who_cannot_be_heard_at_once) {
    this->held_by_a_and_wanted_by({"b.1", "c.1", "b.2", "d.1"});
    this->queue.disconnect("b");
    this->queue.disconnect("c");
    EXPECT_EQ(this->queue.release("a.1").offered_to, "d.1");
    EXPECT_EQ(this->queue.claim("b.1").word, "gone") << "it was dropped, somebody behind it being heard";
    EXPECT_EQ(this->queue.claim("d.1").word, "granted");
    this->queue.release("d.1");
    EXPECT_EQ(this->queue.residue(), "");
}

TYPED_TEST(queue_script, is_free_when_nobody_in_the_queue_is_heard) {
    this->held_by_a_and_wanted_by({"b.1", "c.1", "d.1"});
    for (auto const* const client : {"b", "c", "d"}) this->queue.disconnect(client);
    auto const released = this->queue.release("a.1");
    EXPECT_EQ(released.offered_to, "");
    EXPECT_EQ(released.heard, 0);
    EXPECT_EQ(this->queue.residue(), "");
    for (auto const* const hold : {"b.1", "c.1", "d.1"}) EXPECT_EQ(this->queue.claim(hold).word, "gone");
    EXPECT_EQ(this->queue.acquire("c.1").word, "granted") << "it lives";
}

TYPED_TEST(queue_script, gives_each_offer_the_claim_window_of_whoever_gets_it) {
    auto const usual = this->queue.rules;
    this->held_by_a_and_wanted_by({});
    this->queue.rules = "2000 " + usual.substr(usual.find(' ') + 1);
    EXPECT_EQ(this->queue.acquire("b.1").word, "queued");
    this->queue.rules = "10 " + usual.substr(usual.find(' ') + 1);
    EXPECT_EQ(this->queue.acquire("c.1").word, "queued");
    EXPECT_EQ(this->queue.release("a.1").offered_to, "b.1");
    this->queue.pass(1900);
    EXPECT_EQ(this->queue.try_acquire("d.1").word, "busy") << "whoever asks";
    EXPECT_EQ(this->queue.claim("b.1").word, "granted");
    EXPECT_EQ(this->queue.release("b.1").offered_to, "c.1");
    this->queue.pass(10);
    EXPECT_EQ(this->queue.claim("c.1").word, "gone");
    this->queue.rules = usual;
}

TYPED_TEST(queue_script, takes_an_offer_back_that_is_not_claimed_in_time) {
    this->held_by_a_and_wanted_by({"b.1", "c.1"});
    this->queue.release("a.1");
    this->queue.pass(this->queue.window);
    EXPECT_EQ(this->queue.release("a.1").word, "gone");  // the releasing client looks whether its hand-off worked
    EXPECT_THAT(this->queue.told(), ElementsAre("b.1", "c.1"));
    EXPECT_EQ(this->queue.claim("b.1").word, "gone");
    EXPECT_EQ(this->queue.claim("c.1").word, "granted");
    EXPECT_EQ(this->queue.acquire("b.1").word, "queued") << "who was late joins the tail with the same hold";
    this->queue.release("c.1");
    EXPECT_EQ(this->queue.claim("b.1").word, "granted");
}

TYPED_TEST(queue_script, refuses_a_claim_that_comes_too_late_and_passes_on_what_it_was_for) {
    this->held_by_a_and_wanted_by({"b.1", "c.1"});
    this->queue.release("a.1");
    this->queue.pass(this->queue.window);
    EXPECT_EQ(this->queue.claim("b.1").word, "gone");
    EXPECT_THAT(this->queue.told(), ElementsAre("b.1", "c.1"));
    this->queue.pass(this->queue.window);
    EXPECT_EQ(this->queue.claim("c.1").word, "gone") << "also when nobody else wants it";
    EXPECT_EQ(this->queue.residue(), "");
}

TYPED_TEST(queue_script, passes_over_all_places_of_a_client_that_let_an_offer_lapse) {
    this->held_by_a_and_wanted_by({"b.1", "b.2", "b.3", "c.1", "b.4", "c.2"});
    this->queue.release("a.1");
    this->queue.pass(this->queue.window);
    EXPECT_EQ(this->queue.acquire("c.1").word, "granted") << "not b.2";
    EXPECT_EQ(this->queue.release("c.1").offered_to, "c.2") << "nor b.4";
    EXPECT_EQ(this->queue.claim("c.2").word, "granted");
    EXPECT_THAT(this->queue.told(), ElementsAre("b.1", "c.2"));
    EXPECT_EQ(this->queue.claim("b.1").word, "gone");
    EXPECT_EQ(this->queue.acquire("b.2").word, "queued") << "b is back, and its other places are gone";
    EXPECT_EQ(this->queue.release("c.2").offered_to, "b.2");
    this->queue.pass(this->queue.window);
    EXPECT_EQ(this->queue.acquire("c.3").word, "granted");
    EXPECT_EQ(this->queue.acquire("c.4").word, "queued");
    EXPECT_EQ(this->queue.acquire("b.5").word, "queued") << "any call will do";
    EXPECT_EQ(this->queue.release("c.3").offered_to, "c.4");
    EXPECT_EQ(this->queue.release("c.4").offered_to, "b.5");
}

TYPED_TEST(queue_script, takes_the_places_of_suspects_out_of_the_queue) {
    this->held_by_a_and_wanted_by({"b.1", "b.2", "b.3"});
    this->queue.release("a.1");
    this->queue.pass(this->queue.window);
    EXPECT_EQ(this->queue.release("a.1").offered_to, "") << "they are all of one client, and it let an offer lapse";
    EXPECT_EQ(this->queue.residue(), "");
    EXPECT_EQ(this->queue.try_acquire("c.1").word, "granted");
    auto const again = this->queue.acquire("b.3");
    EXPECT_EQ(again.word, "queued");
    EXPECT_TRUE(again.place_is_new) << "and if it lives it hears so";
    EXPECT_FALSE(this->queue.acquire("b.3").place_is_new);
    EXPECT_EQ(this->queue.release("c.1").offered_to, "b.3");
    EXPECT_EQ(this->queue.claim("b.3").word, "granted");
    this->queue.release("b.3");
    EXPECT_EQ(this->queue.residue(), "");
}

TYPED_TEST(queue_script, forgets_a_waiter_that_cancels_wherever_it_stands) {
    for (std::string const order : {"123", "132", "213", "231", "312", "321", "24", "42"}) {
        this->held_by_a_and_wanted_by({"b.1", "c.2", "b.3", "c.4"});
        for (auto const number : order) {
            std::string const hold = std::string{number == '1' || number == '3' ? "b." : "c."} + number;
            EXPECT_EQ(this->queue.release(hold).word, "cancelled");
            EXPECT_EQ(this->queue.release(hold).word, "gone");
            EXPECT_EQ(this->queue.queue_damage(), "") << order;
        }
        EXPECT_EQ(this->queue.acquire("d.9").position, order.size() == 3 ? 2 : 3);
        std::string owner = "a.1";
        for (std::string const left : {"b.1", "c.2", "b.3", "c.4", "d.9"}) {
            if (order.find(left[2]) != std::string::npos) continue;
            EXPECT_EQ(this->queue.release(owner).offered_to, left) << order;
            EXPECT_EQ(this->queue.claim(left).word, "granted") << order;
            owner = left;
        }
        this->queue.release(owner);
        EXPECT_EQ(this->queue.residue(), "") << order;
    }
}

TYPED_TEST(queue_script, passes_an_offer_on_when_its_waiter_cancels) {
    this->held_by_a_and_wanted_by({"b.1", "c.1"});
    this->queue.release("a.1");
    EXPECT_EQ(this->queue.release("b.1").offered_to, "c.1");
    EXPECT_THAT(this->queue.told(), ElementsAre("b.1", "c.1"));
    EXPECT_EQ(this->queue.claim("b.1").word, "gone");
}

TYPED_TEST(queue_script, does_nothing_after_its_deadline) {
    auto const now = this->queue.acquire("a.1").now;
    for (auto const* const hold : {"b.1", "a.1"})
        EXPECT_EQ(this->queue.acquire(hold, {.deadline = now - 1}).word, "late") << "waiting and having alike";
    this->queue.release("a.1");
    auto const late = this->queue.acquire("b.1", {.deadline = now - 1});
    EXPECT_EQ(late.word, "late");
    EXPECT_GE(late.now, now);
    EXPECT_EQ(this->queue.residue(), "");
    EXPECT_EQ(this->queue.acquire("b.1", {.deadline = late.now + 5000}).word, "granted");
}

TYPED_TEST(queue_script, knows_an_end_that_the_clock_put_off_also_when_others_wait) {
    this->held_by_a_and_wanted_by({"b.1"});
    this->queue.pass(-this->queue.hour / 4);
    EXPECT_EQ(this->queue.acquire("c.1").left, this->queue.ttl);
    this->queue.release("a.1");
    this->queue.pass(-this->queue.hour / 4);
    EXPECT_EQ(this->queue.acquire("d.1").left, this->queue.window) << "an offer has an end too";
}

TYPED_TEST(queue_script, answers_a_try_without_queueing) {
    this->held_by_a_and_wanted_by({});
    auto const before = this->queue.hash();
    auto const busy = this->queue.try_acquire("b.1");
    EXPECT_EQ(busy.word, "busy");
    EXPECT_LE(busy.left, this->queue.ttl);
    EXPECT_EQ(this->queue.hash(), before);
    this->queue.pass(this->queue.ttl);
    EXPECT_EQ(this->queue.try_acquire("b.1").word, "granted");
    EXPECT_EQ(this->queue.acquire("c.1").word, "queued");
    this->queue.pass(this->queue.ttl);
    EXPECT_EQ(this->queue.try_acquire("d.1").word, "busy") << "c.1 was first";
    EXPECT_THAT(this->queue.told(), ElementsAre("c.1"));
    EXPECT_EQ(this->queue.claim("c.1").word, "granted");
    this->queue.release("c.1");
    EXPECT_EQ(this->queue.residue(), "");
}

TYPED_TEST(queue_script, refuses_one_waiter_too_many) {
    this->held_by_a_and_wanted_by({"b.1", "b.2", "b.3"});
    EXPECT_THAT(this->queue.acquire("c.1", {.waiters = 3}).word, StartsWith("LOCKSTEP_WAITERS"));
    EXPECT_EQ(this->queue.acquire("b.2", {.waiters = 3}).word, "queued") << "it is one of the three";
    this->queue.release("b.2");
    EXPECT_EQ(this->queue.acquire("c.1", {.waiters = 3}).word, "queued") << "holes do not count";
}

TYPED_TEST(queue_script, gives_larger_fences_after_the_hash_is_gone) {
    auto const first = this->queue.acquire("a.1").fence;
    this->queue.commands.must({"DEL", this->queue.key});
    EXPECT_GT(this->queue.acquire("b.1").fence, first);
}

TYPED_TEST(queue_script, takes_back_no_word_that_something_is_lost_when_the_clock_steps_back) {
    for (bool const wanted : {false, true}) {
        this->held_by_a_and_wanted_by({});
        if (wanted) this->queue.acquire("b.1");
        this->queue.pass(this->queue.ttl);
        EXPECT_EQ(this->queue.renew("a.1").word, "gone");
        EXPECT_EQ(this->queue.told().size(), wanted ? 1U : 0U) << "others need not wait any longer";
        this->queue.pass(-this->queue.ttl / 2);
        EXPECT_EQ(this->queue.renew("a.1").word, "gone");
        EXPECT_EQ(this->queue.acquire("b.1").word, "granted");
        this->queue.release("b.1");
    }
}

TYPED_TEST(queue_script, frees_what_a_dead_holder_had_within_its_ttl_also_when_the_clock_steps_back) {
    for (bool const renewed : {false, true}) {
        this->held_by_a_and_wanted_by({});
        if (renewed) this->queue.renew("a.1");
        this->queue.pass(-this->queue.hour);
        EXPECT_EQ(this->queue.acquire("b.1").left, this->queue.ttl);
        this->queue.pass(this->queue.ttl);
        EXPECT_EQ(this->queue.acquire("b.1").word, "granted");
        this->queue.release("b.1");
        this->queue.pass(this->queue.hour);
    }
}

TYPED_TEST(queue_script, lets_no_token_be_adopted_after_the_deadline) {
    this->queue.acquire("a.1");
    auto const before = this->queue.hash();
    EXPECT_EQ(this->queue.adopt("a.1", "b.1", 1).word, "late");
    EXPECT_EQ(this->queue.hash(), before);
    EXPECT_EQ(this->queue.adopt("a.1", "b.1").word, "granted");
}

TYPED_TEST(queue_script, lets_a_token_be_adopted_once) {
    auto const first = this->queue.acquire("a.1");
    auto const adopted = this->queue.adopt("a.1", "b.1");
    EXPECT_EQ(adopted.word, "granted");
    EXPECT_EQ(adopted.fence, first.fence);
    EXPECT_EQ(this->queue.adopt("a.1", "b.1").word, "granted") << "the reply may have been lost";
    EXPECT_EQ(this->queue.adopt("a.1", "c.1").word, "gone");
    EXPECT_EQ(this->queue.renew("a.1").word, "gone");
    EXPECT_EQ(this->queue.release("a.1").word, "gone");
    EXPECT_EQ(this->queue.renew("b.1").word, "renewed");
    this->queue.pass(this->queue.ttl);
    EXPECT_EQ(this->queue.adopt("b.1", "c.1").word, "gone");
}

TYPED_TEST(queue_script, tells_the_second_in_line_too_when_the_releasing_client_leaves) {
    this->held_by_a_and_wanted_by({"b.1", "c.1"});
    this->queue.release_leaving("a.1");
    EXPECT_THAT(this->queue.told(), ElementsAre("b.1", "c.1"));
    auto const waits = this->queue.claim("c.1");
    EXPECT_EQ(waits.word, "queued") << "that was a hint and no offer";
    EXPECT_LE(waits.left, this->queue.window);
    this->queue.pass(waits.left);
    EXPECT_EQ(this->queue.claim("c.1").word, "granted");
}

TYPED_TEST(queue_script, expires_later_after_a_late_hand_over) {
    auto const left = [&] { return this->queue.commands.must({"PTTL", this->queue.key}).integer; };
    this->held_by_a_and_wanted_by({"b.1", "c.1"});
    this->queue.pass(this->queue.retention + 2 * this->queue.window);
    EXPECT_EQ(this->queue.release("a.1").offered_to, "b.1");
    EXPECT_EQ(this->queue.claim("b.1").word, "granted");
    EXPECT_GE(left(), this->queue.ttl + this->queue.retention - 1000) << "moved by the claim";
    this->queue.pass(this->queue.retention + this->queue.ttl);
    EXPECT_EQ(this->queue.release("b.1").offered_to, "c.1");
    EXPECT_GE(left(), 2 * this->queue.retention - 1000) << "moved by the offer";
}

TYPED_TEST(queue_script, refuses_another_type_and_leaves_it_alone) {
    this->queue.commands.must({"SET", this->queue.key, "mine"});
    for (auto const& answer : {this->queue.acquire("a.1"), this->queue.claim("a.1"), this->queue.renew("a.1"),
                               this->queue.release("a.1"), this->queue.adopt("a.1", "b.1")})
        EXPECT_THAT(answer.word, StartsWith("WRONGTYPE"));
    EXPECT_EQ(this->queue.commands.must({"GETDEL", this->queue.key}).text, "mine");
}

TYPED_TEST(queue_script, takes_no_more_when_the_server_is_out_of_memory_but_keeps_and_hands_on_what_is_there) {
    this->held_by_a_and_wanted_by({"b.1", "c.1"});
    auto const before = this->queue.hash();
    this->queue.pass(1);  // within the ms in which it was taken, a renewal has nothing to write
    this->queue.server.must({"CONFIG", "SET", "maxmemory", "1"});
    EXPECT_THAT(this->queue.acquire("d.1").word, StartsWith("OOM"));
    EXPECT_EQ(this->queue.hash(), before);
    EXPECT_EQ(this->queue.renew("a.1").word, "renewed");
    EXPECT_EQ(this->queue.adopt("a.1", "e.1").word, "granted");
    EXPECT_EQ(this->queue.release("e.1").offered_to, "b.1");
    EXPECT_EQ(this->queue.claim("b.1").word, "granted");
    EXPECT_EQ(this->queue.release("c.1").word, "cancelled");
    this->queue.release("b.1");
    EXPECT_THAT(this->queue.acquire("d.1").word, StartsWith("OOM")) << "though it is free";
    this->queue.server.must({"CONFIG", "SET", "maxmemory", "0"});
    EXPECT_EQ(this->queue.acquire("d.1").word, "granted");
}

TYPED_TEST(queue_script, offers_although_the_channel_is_forbidden) {
    this->held_by_a_and_wanted_by({"b.1"});
    this->queue.server.must({"ACL", "SETUSER", "default", "resetchannels"});
    auto const released = this->queue.release("a.1");
    EXPECT_EQ(released.offered_to, "b.1");
    EXPECT_EQ(released.heard, -1);
    EXPECT_EQ(this->queue.acquire("b.1").word, "granted");
}

TYPED_TEST(queue_script, tells_by_a_sharded_channel_if_that_has_a_hash_tag) {
    this->queue.rules = "500 3600000 lockstep:{name}:wake:";
    this->held_by_a_and_wanted_by({"b.1", "c.1"});
    this->queue.ear = this->queue.server.connect();
    this->queue.ear.send({"SSUBSCRIBE", "lockstep:{name}:wake:c"});
    EXPECT_EQ(this->queue.ear.read().elements.at(0).text, "ssubscribe");
    EXPECT_EQ(this->queue.release("a.1").offered_to, "c.1") << "b is not heard";
    auto const said = this->queue.ear.read();
    EXPECT_EQ(said.elements.at(0).text, "smessage");
    EXPECT_EQ(said.elements.at(2).text, "c.1");
    EXPECT_EQ(this->queue.server.info("cmdstat_publish"), "");
}

// ---- commands that come late

TYPED_TEST(queue_script, ignores_a_renewal_that_is_older_than_the_last_one) {
    this->queue.keep_own_time();
    this->held_by_a_and_wanted_by({"b.1"});
    EXPECT_EQ(this->queue.renew("a.1", 1'000, 1).word, "renewed");
    EXPECT_EQ(this->queue.renew("a.1", 600'000, 2).left, 600'000);
    auto const late = this->queue.renew("a.1", 1'000, 1);
    EXPECT_EQ(late.word, "older");
    EXPECT_GE(late.left, 599'990);
    this->queue.pass(2'000);
    EXPECT_EQ(this->queue.try_acquire("c.1").word, "busy") << "as long as the last one said";
    EXPECT_EQ(this->queue.renew("a.1", 5, 3).word, "renewed");
    this->queue.pass(10);
    EXPECT_EQ(this->queue.release("a.1").offered_to, "b.1");
}

TYPED_TEST(queue_script, answers_a_renewal_that_is_sent_again_with_the_time_that_is_left) {
    this->queue.keep_own_time();
    this->held_by_a_and_wanted_by({});
    EXPECT_EQ(this->queue.renew("a.1", 10'000, 1).left, 10'000);
    this->queue.pass(4'000);
    auto const again = this->queue.renew("a.1", 10'000, 1);
    EXPECT_EQ(again.word, "renewed");
    EXPECT_LE(again.left, 6'000);
    EXPECT_GE(again.left, 5'990);
}

TYPED_TEST(queue_script, begins_to_count_anew_with_each_hold) {
    this->held_by_a_and_wanted_by({"b.1"});
    this->queue.renew("a.1", 1'000, 9);
    this->queue.release("a.1");
    this->queue.claim("b.1");
    EXPECT_EQ(this->queue.renew("b.1", 1'000, 1).word, "renewed");
    EXPECT_EQ(this->queue.acquire("c.1").word, "queued");
    this->queue.renew("b.1", 1'000, 7);
    this->queue.pass(1'000);
    EXPECT_EQ(this->queue.acquire("c.1").word, "granted") << "by a lapse";
    EXPECT_EQ(this->queue.renew("c.1", 1'000, 1).word, "renewed");
}

TYPED_TEST(queue_script, changes_nothing_when_it_adopts_again_after_a_renewal) {
    this->queue.keep_own_time();
    this->held_by_a_and_wanted_by({});
    EXPECT_EQ(this->queue.adopt("a.1", "c.1").word, "granted");
    EXPECT_EQ(this->queue.renew("c.1", 600'000, 1).word, "renewed");
    auto const late = this->queue.adopt("a.1", "c.1");
    EXPECT_EQ(late.word, "granted");
    EXPECT_GE(late.left, 599'990);
    this->queue.pass(20'000);
    EXPECT_EQ(this->queue.try_acquire("d.1").word, "busy");
}

}  // namespace
