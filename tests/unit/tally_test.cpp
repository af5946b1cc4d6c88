#include "lease/tally.hpp"

#include <gtest/gtest.h>

namespace {

using lockstep::base::histogram;
using lockstep::engine::counts;
using lockstep::engine::ledger;
using namespace std::chrono_literals;

TEST(histogram, has_buckets_without_gaps) {
    for (unsigned i = 0; i < histogram::last; ++i) {
        EXPECT_EQ(histogram::index_of(histogram::least_of(i)), i);
        EXPECT_EQ(histogram::index_of(histogram::least_of(i + 1) - 1), i);
    }
    EXPECT_EQ(histogram::index_of(~std::uint64_t{0}), histogram::last);
}

TEST(histogram, knows_percentiles_to_within_an_eighth) {
    histogram times;
    for (int i = 1; i <= 1'000; ++i) times.add(std::chrono::microseconds{i * 100});
    EXPECT_EQ(times.count, 1'000U);
    EXPECT_EQ(times.average(), 50'050us);
    for (int part : {1, 10, 50, 90, 95, 99}) {
        auto const exact = part * 1'000.0;
        EXPECT_NEAR(static_cast<double>(times.percentile(part).count()), exact, exact / 8) << part;
    }
    EXPECT_LE(times.percentile(100).count(), 100'000);
    EXPECT_EQ(times.max_us, 100'000U);
    EXPECT_EQ(histogram{}.percentile(99), 0us);
}

TEST(histogram, takes_no_time_and_less_than_none_for_nothing) {
    histogram times;
    times.add(0ns);
    times.add(-5ms);
    EXPECT_EQ(times.percentile(99), 0us);
    EXPECT_EQ(times.sum_us, 0U);
}

TEST(tally, is_the_same_after_it_was_written_and_read) {
    counts before;
    before.acquisitions = 7;
    before.losses = 2;
    for (auto const time : {3us, 900us, 70'000us, 70'001us}) before.held.add(time);
    auto const after = counts::from(before.text() + ";1794752005852");
    ASSERT_TRUE(after);
    EXPECT_EQ(after->text(), before.text());
    EXPECT_EQ(after->held.count, 4U);
    for (auto const* const bad : {"", "1 2 3", "1 2 3 4", "1 2 3 4;1 1;x", "1 2 3 4;1 1 999:1;0 0"}) EXPECT_FALSE(counts::from(bad)) << bad;
}

TEST(tally, of_names_that_come_and_go_is_sent_once_for_each) {
    ledger books;
    for (int i = 0; i < 5'000; ++i) {
        std::shared_ptr<lockstep::engine::tally> mine;  // of an object that lives for this round
        ++books.open(mine, lockstep::engine::lock_kind, i % 2 == 0 ? "even" : "odd").acquisitions;
    }
    books.merge();
    auto const words = books.take(100);
    ASSERT_EQ(words.size(), 6U) << "two names and their sum";
    EXPECT_EQ(words[0], "lock even");
    EXPECT_EQ(counts::from(words[1])->acquisitions, 2'500U);
    EXPECT_EQ(words[4], "lock");
    EXPECT_EQ(counts::from(words[5])->acquisitions, 5'000U);
    EXPECT_TRUE(books.empty());
    EXPECT_EQ(books.totals().at(0).all.acquisitions, 5'000U);
}

TEST(tally, of_too_many_names_is_bounded_and_counts_their_sum) {
    ledger books;
    for (int i = 0; i < 30'000; ++i) {
        std::shared_ptr<lockstep::engine::tally> mine;
        ++books.open(mine, lockstep::engine::lock_kind, "order-" + std::to_string(i)).acquisitions;
    }
    EXPECT_EQ(books.totals().at(0).all.acquisitions, 30'000U);
    books.merge();
    auto const words = books.take(100'000);
    EXPECT_EQ(words.size(), 2 * (ledger::most_open + 1));
    EXPECT_EQ(counts::from(words.back())->acquisitions, 30'000U);
    EXPECT_TRUE(books.empty());
}

TEST(tally, gives_names_up_and_keeps_their_sum) {
    ledger books;
    std::shared_ptr<lockstep::engine::tally> mine;
    ++books.open(mine, lockstep::engine::lock_kind, "x").acquisitions;
    books.give_up_names();
    ++books.open(mine, lockstep::engine::lock_kind, "x").acquisitions;
    EXPECT_EQ(books.take(10).size(), 4U) << "the second one of x, and the sum of both";
    EXPECT_EQ(books.totals().at(0).all.acquisitions, 2U);
}

TEST(tally, keeps_for_later_what_is_too_much_at_once) {
    ledger books;
    std::vector<std::shared_ptr<lockstep::engine::tally>> mine(30);
    for (std::size_t i = 0; i < mine.size(); ++i) ++books.open(mine[i], lockstep::engine::event_kind, "n" + std::to_string(i)).waits;
    EXPECT_EQ(books.take(20).size(), 42U);
    EXPECT_EQ(books.take(20).size(), 22U);
    EXPECT_TRUE(books.take(20).empty());
    EXPECT_EQ(books.totals().at(0).all.waits, 30U);
}

}  // namespace
