#pragma once

// RESP3 (and RESP2) replies from bytes, as they come, without sockets.
//
// The caller keeps the bytes. It gives the parser everything unread, each time from the first byte of the current
// message on; the buffer may have grown and moved since, so the parser remembers offsets only. It goes on where it
// stopped: a 10 MB string in small pieces costs no more than in one (only an unfinished number is read again).
//
//     while (parser.parse(unread) == status::ready) {
//         handle(parser.message());              // looks into `unread`, and into the parser: valid until the next parse()
//         unread.remove_prefix(parser.consumed());
//     }
//
// The tree of a message is a flat array of nodes that is reused, so that nothing is allocated once it has grown to what
// the traffic needs. Nothing is ever allocated because of a declared length or count, only because of bytes that came.
//
// Attributes are read, held to the limits and dropped. Texts that come in chunks ($?) lie in no one place, so a message
// with one gets all its texts copied to a buffer of the parser; Redis does not send them today, so simple beats fast.
//
// To add a type: a case in parser::element(), a reply_type, an entry in the random trees of tests/unit/resp_support.hpp
// and a seed in tests/fuzz/corpus.

#include <lockstep/reply.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::resp {

/// What a peer may make us keep. A declared length or count over its limit fails at once, before its bytes come.
struct limits {
    std::size_t max_bulk = std::size_t{512} << 20;     ///< bytes of one string
    std::size_t max_elements = std::size_t{16} << 20;  ///< values below the top of one message, at every depth
    std::size_t max_depth = 64;                        ///< aggregates inside each other
    std::size_t max_message = std::size_t{1} << 30;    ///< bytes of one message as sent
    std::size_t max_line = std::size_t{64} << 10;      ///< bytes of a simple string, simple error or big number
};

enum class status : std::uint8_t { need_more, ready, failed };

enum class parse_error : std::uint8_t {
    none,
    unknown_type,  ///< not the first byte of any RESP value
    bad_line_end,  ///< CR LF expected
    bad_length,    ///< of a string or an aggregate
    bad_integer,
    bad_boolean,
    bad_double,
    bad_big_number,
    bad_verbatim,   ///< no "txt:" or the like in front
    bad_nesting,    ///< a push, an end, a chunk or an attribute where it cannot be
    bulk_too_long,  // from here on: a limit
    line_too_long,
    message_too_long,
    too_many_elements,
    too_deep,
};

class parser {
public:
    explicit parser(limits const& allowed = {}) noexcept;

    /// Reads on. After `ready` it starts the following message; after `failed` it stays failed until reset(), because
    /// nobody can tell where the next message begins.
    status parse(std::string_view unread);

    reply_view message() const noexcept { return {nodes_.data(), base_}; }  ///< after ready
    std::size_t consumed() const noexcept { return pos_; }                  ///< after ready: bytes of the message

    parse_error error() const noexcept { return error_; }                   ///< after failed
    std::string const& error_text() const noexcept { return error_text_; }  ///< says what was wrong, where, and the limit

    /// After need_more: read at least this much before the next parse(). Grows only with what has come, not with what
    /// was declared, so that it can be used to size a buffer.
    std::size_t bytes_missing() const noexcept;

    /// Forgets everything unfinished, for a new connection.
    void reset() noexcept;
    /// From the next message on.
    void set_limits(limits const& allowed) noexcept;

    std::size_t memory() const noexcept;  ///< bytes held on the heap

private:
    enum class step : std::uint8_t { next, value, ready, starved, failed };
    enum class expecting : std::uint8_t { element, body, chunk, chunk_body };
    enum class frame_kind : std::uint8_t { counted, streamed, attribute };

    struct frame {
        std::uint32_t node;  // of the aggregate; of an attribute: where its nodes begin
        std::uint32_t left;  // children to come, unless streamed
        frame_kind kind;
    };

    step advance(std::string_view bytes);
    step element(std::string_view bytes);
    step line(std::string_view bytes, reply_type type);
    step line_value(std::string_view text, reply_type type);
    step integer(std::string_view bytes);
    step boolean(std::string_view bytes);
    step null(std::string_view bytes);
    step bulk(std::string_view bytes, reply_type type);
    step body(std::string_view bytes);
    step chunk(std::string_view bytes);
    step chunk_body(std::string_view bytes);
    step aggregate(std::string_view bytes, reply_type type, frame_kind kind = frame_kind::counted);
    step open(reply_type type, frame_kind kind, std::uint32_t children);
    step end_of_stream(std::string_view bytes);
    step complete();

    step length(std::string_view bytes, parse_error too_large, std::size_t most, std::int64_t& value);
    step line_end(std::string_view bytes, std::size_t at);
    step begin_body(std::size_t size, std::size_t limit, expecting what);
    step fail(parse_error error, std::string const& text);

    detail::reply_node& add(reply_type type);
    void start_message() noexcept;
    void finish_message(std::string_view bytes);

    limits limits_;
    std::vector<detail::reply_node> nodes_;
    std::vector<frame> open_;
    std::size_t pos_ = 0;       // first byte of the value or chunk being read
    std::size_t scanned_ = 0;   // of an unfinished line: where to look on for its end; never beyond the next value
    std::size_t body_ = 0;      // of a string whose length is known: where its text begins
    std::size_t length_ = 0;    // and how long it is
    std::size_t elements_ = 0;  // declared or seen in this message
    std::size_t seen_ = 0;      // bytes given at the last parse()
    char const* base_ = "";     // what the offsets in nodes_ count from; set when a message is ready
    expecting expecting_ = expecting::element;
    reply_type body_type_ = reply_type::null;
    status status_ = status::need_more;
    parse_error error_ = parse_error::none;
    bool attributed_ = false;  // an attribute has just ended: a value must follow
    bool gathered_ = false;    // some text of this message came in chunks
    std::string chunks_;       // the texts that came in chunks
    std::string error_text_;
};

}  // namespace lockstep::resp
