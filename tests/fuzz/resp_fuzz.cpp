// The parser on anything. The first four bytes of the input choose the sizes of the pieces, the rest is what the server
// sends. Whatever it is:
//   - in one piece and in pieces, the outcome is the same: state, error, tree, bytes consumed;
//   - every text lies in the bytes given, or in the parser where texts came in chunks; every tree can be walked;
//   - every conversion ends in a value or in a lockstep::error;
//   - an owning copy equals its original; memory stays within a multiple of the bytes that came.

#include <lockstep/reply.hpp>

#include "resp/parser.hpp"

#include "support/fuzz.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace {

using lockstep::reply;
using lockstep::reply_view;
using lockstep::fuzz::exact_copy;
using lockstep::fuzz::require;
namespace resp = lockstep::resp;

constexpr resp::limits small{.max_bulk = 200, .max_elements = 100, .max_depth = 6, .max_message = 1000, .max_line = 80};

template <typename T> void convert(reply_view value) {
    try {
        static_cast<void>(value.as<T>());
    } catch (lockstep::error const&) {
    }
}

void convert_all(reply_view value) {
    convert<std::string>(value);
    convert<std::int8_t>(value);
    convert<std::uint64_t>(value);
    convert<double>(value);
    convert<bool>(value);
    convert<std::vector<std::optional<std::string>>>(value);
    convert<std::map<std::string, reply_view>>(value);
    convert<std::tuple<reply_view, long>>(value);
    static_cast<void>(value.find("key"));
}

std::size_t walk(reply_view value, std::size_t depth) {
    require(depth <= small.max_depth + 1, "depth");
    if (value.is_text()) {
        std::size_t sum = 0;
        for (char byte : value.text()) sum += static_cast<unsigned char>(byte);
        volatile std::size_t const read = sum;  // so that the sanitizer sees each byte being read
        static_cast<void>(read);
        require(value.text().size() <= small.max_bulk, "length");
    }
    std::size_t nodes = 1, children = 0;
    for (auto child : value) {
        ++children;
        nodes += walk(child, depth + 1);
    }
    require(children == value.size(), "number of children");
    return nodes;
}

void check_message(reply_view message, std::size_t consumed, std::size_t given) {
    require(consumed != 0 && consumed <= given, "bytes consumed");
    require(walk(message, 0) <= small.max_elements + 1, "number of nodes");
    require(reply(message) == message, "an owning copy equals its original");
    convert_all(message);  // throwing is slow here, so not for every node
    reply_view last;
    for (auto const child : message) last = child;
    convert_all(last);
}

/// One message, in pieces, in a buffer that moves.
resp::status parse_in_pieces(resp::parser& parser, std::string_view bytes, std::string_view sizes,
                             std::unique_ptr<exact_copy>& buffer) {
    std::size_t given = 0, piece = 0;
    auto state = resp::status::need_more;
    while (state == resp::status::need_more && given < bytes.size()) {
        given = std::min(bytes.size(), given + 1 + static_cast<unsigned char>(sizes[piece++ % sizes.size()]) % 32);
        buffer = std::make_unique<exact_copy>(bytes.substr(0, given));
        state = parser.parse(buffer->view());
        require(parser.memory() <= 4096 + 64 * given, "memory follows the bytes that came");
        require(state != resp::status::need_more || parser.bytes_missing() >= 1, "something is missing");
    }
    return state;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    constexpr std::size_t head = 4;
    if (size < head) return 0;
    std::string_view const input(reinterpret_cast<char const*>(data), size);
    auto const sizes = input.substr(0, head);
    exact_copy const copy(input.substr(head));
    auto unread = copy.view();

    resp::parser whole(small), pieces(small);
    while (!unread.empty()) {
        std::unique_ptr<exact_copy> buffer;
        auto const state = whole.parse(unread);
        require(parse_in_pieces(pieces, unread, sizes, buffer) == state, "same state in pieces");
        require(whole.error() == pieces.error(), "same error in pieces");
        if (state != resp::status::ready) break;
        require(whole.consumed() == pieces.consumed(), "same size in pieces");
        require(whole.message() == pieces.message(), "same tree in pieces");
        check_message(whole.message(), whole.consumed(), unread.size());
        unread.remove_prefix(whole.consumed());
    }
    return 0;
}
