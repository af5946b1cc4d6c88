// Where replies arrive: nothing is lost, and a large one is in memory once.
#include "resp/input.hpp"
#include "resp/parser.hpp"
#include "resp/shared_message.hpp"

#include <lockstep/reply.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <string_view>

namespace lockstep::resp {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

void put(input& in, std::string_view bytes, std::size_t at_once) {
    while (!bytes.empty()) {
        auto const room = in.reserve(at_once);
        auto const size = std::min({at_once, room.size(), bytes.size()});
        std::memcpy(room.data(), bytes.data(), size);
        in.commit(size);
        bytes.remove_prefix(size);
    }
}

TEST(input, has_what_came_in_order_in_whatever_pieces_it_is_written_and_read) {
    std::mt19937 random{7};
    auto const below = [&](std::size_t most) { return std::uniform_int_distribution<std::size_t>{0, most - 1}(random); };
    input in;
    std::string expected;
    for (int i = 0; i < 2'000; ++i) {
        std::string bytes(below(i % 50 == 0 ? 3 * mib : 20'000), static_cast<char>('a' + i % 26));
        put(in, bytes, 1 + below(mib));
        expected += bytes;
        auto const used = below(3) == 0 ? expected.size() : below(expected.size() + 1);
        in.consume(used);
        expected.erase(0, used);
        ASSERT_TRUE(in.unread() == expected) << i;
        if (expected.size() > 8 * mib) {
            in.consume(expected.size());
            expected.clear();
        }
    }
}

TEST(input, takes_no_more_than_half_as_much_again_as_has_come) {
    input in;
    std::string const piece(100'000, 'x');
    std::size_t size = 0;
    while (size < 64 * mib) {
        put(in, piece, piece.size());
        size += piece.size();
        auto const held = in.unread().size() + in.reserve(1).size();
        if (size > 2 * mib) ASSERT_LE(held, size + size / 2 + 4'096) << size;
    }
}

TEST(input, leaves_the_bytes_to_whoever_keeps_them) {
    input in;
    std::string const message(3 * mib, 'm');
    put(in, message + "next", mib);
    auto const kept = in.owner();
    auto const* const at = in.unread().data();
    in.release(message.size());
    EXPECT_EQ(in.unread(), "next");
    EXPECT_TRUE(in.unread().data() < at || in.unread().data() >= at + message.size());
    put(in, std::string(5 * mib, 'n'), mib);
    EXPECT_TRUE((std::string_view{at, message.size()}) == message);
    in.consume(in.unread().size());
    EXPECT_EQ(in.owner().use_count(), 2) << "the new bytes are its own";
}

TEST(input, has_no_owner_while_it_is_small) {
    input in;
    put(in, "+OK\r\n", 16'384);
    EXPECT_EQ(in.owner(), nullptr);
}

/// The replies that a message is turned into while it is shared, and its bytes.
struct shared {
    explicit shared(std::string const& bytes) {
        put(in, bytes, mib);
        EXPECT_EQ(parser.parse(in.unread()), status::ready);
    }
    template <class F>
    void handle(F work) {
        shared_message const sharing{in.unread().substr(0, parser.consumed()), in.owner()};
        work(parser.message());
        was_kept = sharing.is_kept();
    }
    bool was_kept = false;
    input in;
    resp::parser parser;
};

std::string bulk(std::string_view text) { return "$" + std::to_string(text.size()) + "\r\n" + std::string{text} + "\r\n"; }

TEST(shared_message, is_kept_by_a_reply_and_not_copied) {
    std::string const text(4 * mib, 't');
    std::optional<reply> made;
    {
        shared from{bulk(text)};
        from.handle([&](reply_view message) {
            made.emplace(message);
            EXPECT_EQ(made->text().data(), message.text().data());
        });
        EXPECT_TRUE(from.was_kept);
    }
    EXPECT_TRUE(made->text() == text) << "it outlives where it arrived";
    auto const copy = *made;
    EXPECT_NE(copy.text().data(), made->text().data());
    auto const moved = std::move(*made);
    made.reset();
    EXPECT_TRUE(moved == copy);
}

TEST(shared_message, is_not_kept_for_the_sake_of_a_small_part) {
    shared from{"*2\r\n" + bulk(std::string(4 * mib, 't')) + bulk("small")};
    from.handle([&](reply_view message) {
        reply const all{message};
        reply const part{message[1]};
        EXPECT_EQ(all[1].text().data(), message[1].text().data());
        EXPECT_NE(part.text().data(), message[1].text().data());
        EXPECT_EQ(part.text(), "small");
        EXPECT_TRUE(all == message);
    });
    reply const later{from.parser.message()};
    EXPECT_NE(later[0].text().data(), from.parser.message()[0].text().data()) << "nobody shares it any longer";
}

}  // namespace
}  // namespace lockstep::resp
