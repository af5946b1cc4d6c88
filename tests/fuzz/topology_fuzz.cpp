// What servers answer about themselves and each other: HELLO, INFO and ROLE at log-in, CLUSTER SLOTS, MOVED and ASK, Sentinels. The first byte of the
// input chooses, the rest is what the server sends: replies, or the text of an error or a message. Whatever it is:
//   - it is read, or refused with a lockstep::error, which does not show the password that was sent;
//   - slots and ports that come out are in range, and every node has a host.

#include "redis/handshake.hpp"
#include "redis/sentinel_replies.hpp"
#include "redis/slot.hpp"
#include "redis/slot_map.hpp"
#include "redis/verdict.hpp"
#include "resp/parser.hpp"

#include "support/fuzz.hpp"

#include <vector>

namespace {

using namespace lockstep;
using fuzz::require;

constexpr std::string_view secret = "S3KR1T-of-the-user";

std::vector<reply> replies_in(std::string_view bytes) {
    std::vector<reply> all;
    resp::parser parser{{.max_bulk = 4096, .max_elements = 4096, .max_depth = 16, .max_message = 16384, .max_line = 4096}};
    while (!bytes.empty() && parser.parse(bytes) == resp::status::ready) {
        all.emplace_back(parser.message());
        bytes.remove_prefix(parser.consumed());
    }
    return all;
}

void check(redis::endpoint const& node, char const* promise) { require(!node.host.empty() && node.port != 0, promise, node.host); }

void log_in(std::vector<reply> answers, std::size_t options) {
    redis::handshake const greeting{.user = "u",
                                    .password = {},
                                    .client_name = "fuzz",
                                    .database = (options & 1) != 0 ? 1 : 0,
                                    .check_server = (options & 2) != 0,
                                    .allow_eviction = (options & 4) != 0,
                                    .require_master = (options & 8) != 0,
                                    .track = (options & 16) != 0};
    resp::output sent;
    answers.resize(greeting.say(sent, std::string{secret}));
    try {
        greeting.judge(answers, std::string{secret});
    } catch (error const& problem) {
        require(std::string_view{problem.what()}.find(secret) == std::string_view::npos, "an error shows the password", problem.what());
    }
}

void read_slots(reply_view answer) {
    for (auto const& range : redis::read_slots(answer, {.host = "source", .port = 6379, .path = {}})) {
        require(range.first <= range.last && range.last < redis::slot_count, "slots are in range");
        check(range.master, "a node of the map has an address");
    }
}

void read_error(std::string_view text) {
    auto const found = redis::judge(text);
    static_cast<void>(redis::may_pass(text));
    static_cast<void>(redis::is_servers_own(text));
    static_cast<void>(redis::is_alive_answer(text));
    if (found.what != redis::verdict::moved && found.what != redis::verdict::ask) return;
    require(found.slot < redis::slot_count && found.port != 0, "MOVED and ASK name a slot and a port", text);
}

void read_sentinel(reply_view answer) {
    if (auto const master = redis::read_master(answer)) check(*master, "a master has an address");
    for (auto const& other : redis::read_sentinels(answer)) check(other, "a Sentinel has an address");
    static_cast<void>(redis::read_epoch(answer));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    fuzz::exact_copy const copy{fuzz::text_of(data, size)};
    auto input = copy.view();
    switch (fuzz::take_choice(input, 5)) {
        case 0: {
            auto const options = fuzz::take_choice(input, 32);
            log_in(replies_in(input), options);
            break;
        }
        case 1:
            for (auto const& answer : replies_in(input)) read_slots(answer);
            break;
        case 2: read_error(input); break;
        case 3:
            for (auto const& answer : replies_in(input)) read_sentinel(answer);
            break;
        default:
            if (auto const master = redis::read_switch(input, "main")) check(*master, "an announced master has an address");
    }
    return 0;
}
