// Who has a quorum, and until when: the arithmetic of redlock, without servers.
#include "quorum/ballot.hpp"

#include <gtest/gtest.h>

#include <initializer_list>

namespace lockstep::quorum {
namespace {

using namespace std::chrono_literals;

ballot of(std::size_t nodes, std::initializer_list<vote> votes) {
    ballot made{nodes};
    for (auto const one : votes) made.cast(one);
    return made;
}

constexpr auto yes = vote::yes;
constexpr auto no = vote::no;
constexpr auto silent = vote::silent;

TEST(ballot, needs_more_than_half) {
    for (std::size_t nodes = 1; nodes != 20; ++nodes) {
        auto const quorum = ballot::quorum_of(nodes);
        EXPECT_GT(2 * quorum, nodes) << "two quorums would have no node in common";
        EXPECT_LE(2 * (quorum - 1), nodes) << "one less would do";
    }
}

TEST(ballot, is_won_by_the_vote_that_makes_the_quorum) {
    EXPECT_EQ(of(1, {}).now(), decision::open);
    EXPECT_EQ(of(1, {yes}).now(), decision::won);
    EXPECT_EQ(of(4, {yes, yes}).now(), decision::open) << "half is not enough";
    EXPECT_EQ(of(4, {yes, yes, yes}).now(), decision::won);
    EXPECT_EQ(of(5, {yes, yes}).now(), decision::open);
    EXPECT_EQ(of(5, {no, yes, silent, yes, yes}).now(), decision::won);
}

TEST(ballot, is_lost_as_soon_as_no_quorum_can_say_yes) {
    EXPECT_EQ(of(1, {no}).now(), decision::lost);
    EXPECT_EQ(of(4, {no, silent}).now(), decision::lost);
    EXPECT_EQ(of(5, {no, no}).now(), decision::open);
    EXPECT_EQ(of(5, {no, silent, no}).now(), decision::lost);
    EXPECT_EQ(of(5, {yes, yes, silent, silent, silent}).now(), decision::lost);
}

TEST(ballot, tells_refusal_from_silence) {
    EXPECT_TRUE(of(5, {no, no, no}).is_refused());
    EXPECT_FALSE(of(5, {no, no, silent}).is_refused());
    EXPECT_TRUE(of(5, {silent, silent, silent}).is_out_of_reach());
    EXPECT_FALSE(of(5, {no, silent, silent}).is_out_of_reach());
    EXPECT_TRUE(of(4, {silent, silent}).is_out_of_reach()) << "the other half is no quorum";
}

TEST(validity, counts_from_before_the_request_and_leaves_room_for_drift_and_a_tenth_to_stop) {
    base::boot_clock::time_point const sent{1'000s};
    EXPECT_EQ(end_of_validity(sent, 10s, 0.01), sent + 9s - 102ms);
    EXPECT_EQ(end_of_validity(sent, 10s, 0), sent + 9s - 2ms);
    EXPECT_LT(end_of_validity(sent, 1ms, 0.01), sent) << "too short to be valid at all";
}

}  // namespace
}  // namespace lockstep::quorum
