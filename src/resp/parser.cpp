#include "resp/parser.hpp"

#include "resp/scan.hpp"

#include <algorithm>
#include <limits>

// What ordinary replies are made of becomes one function, parse(), which halves the time of a small reply.
#define LOCKSTEP_HOT [[gnu::always_inline]] inline

namespace lockstep::resp {
namespace {

// What is kept from one message to the next: more than ordinary traffic needs, little enough to hold for good.
constexpr std::size_t kept_nodes = 4096;
constexpr std::size_t kept_text = std::size_t{64} << 10;
constexpr std::size_t read_ahead = std::size_t{64} << 10;

constexpr std::size_t line_end_size = 2;
constexpr std::size_t verbatim_prefix = 4;  // "txt:"

std::string show(char byte) {
    if (byte > ' ' && byte < 127) return std::string{'\'', byte, '\''};
    constexpr std::string_view digits = "0123456789abcdef";
    auto const code = static_cast<unsigned char>(byte);
    return std::string{'0', 'x', digits[code >> 4], digits[code & 15]};
}

std::string over(char const* what, std::size_t limit, char const* unit) {
    return std::string(what) + " over the limit of " + std::to_string(limit) + unit;
}

}  // namespace

parser::parser(limits const& allowed) noexcept { set_limits(allowed); }

// Sizes, counts and spans are kept in 32 bits.
void parser::set_limits(limits const& allowed) noexcept {
    limits_ = allowed;
    constexpr std::size_t most = std::numeric_limits<std::uint32_t>::max() / 2;
    limits_.max_bulk = std::min(limits_.max_bulk, most);
    limits_.max_line = std::min(limits_.max_line, most);
    limits_.max_elements = std::min(limits_.max_elements, most);
}

status parser::parse(std::string_view unread) {
    if (status_ == status::failed) return status_;
    if (status_ == status::ready) start_message();
    auto const bytes = unread.substr(0, limits_.max_message);
    seen_ = bytes.size();

    step result = step::next;
    while (result == step::next) {
        result = advance(bytes);
        if (result == step::value) result = complete();
    }
    if (result == step::starved && bytes.size() == limits_.max_message)
        result = fail(parse_error::message_too_long, over("a message", limits_.max_message, " bytes"));
    if (result == step::ready) finish_message(bytes);
    return status_;
}

LOCKSTEP_HOT parser::step parser::advance(std::string_view bytes) {
    switch (expecting_) {
        case expecting::element: return element(bytes);
        case expecting::body: return body(bytes);
        case expecting::chunk: return chunk(bytes);
        case expecting::chunk_body: return chunk_body(bytes);
    }
    return step::failed;
}

LOCKSTEP_HOT parser::step parser::element(std::string_view bytes) {
    if (pos_ >= bytes.size()) return step::starved;
    switch (bytes[pos_]) {
        case '+': return line(bytes, reply_type::simple_string);
        case '-': return line(bytes, reply_type::error);
        case ':': return integer(bytes);
        case '$': return bulk(bytes, reply_type::bulk_string);
        case '*': return aggregate(bytes, reply_type::array);
        case '_': return null(bytes);
        case '#': return boolean(bytes);
        case ',': return line(bytes, reply_type::real);
        case '(': return line(bytes, reply_type::big_number);
        case '!': return bulk(bytes, reply_type::error);
        case '=': return bulk(bytes, reply_type::verbatim_string);
        case '%': return aggregate(bytes, reply_type::map);
        case '~': return aggregate(bytes, reply_type::set);
        case '|': return aggregate(bytes, reply_type::map, frame_kind::attribute);
        case '>':
            if (!open_.empty()) return fail(parse_error::bad_nesting, "a push inside another value");
            return aggregate(bytes, reply_type::push);
        case '.': return end_of_stream(bytes);
        case ';': return fail(parse_error::bad_nesting, "a chunk outside a streamed string");
        default: return fail(parse_error::unknown_type, show(bytes[pos_]) + " begins no RESP value");
    }
}

// A value of one line: looks for its end from where the last call stopped.
parser::step parser::line(std::string_view bytes, reply_type type) {
    auto const begin = pos_ + 1;
    auto const end = std::min(bytes.size(), begin + limits_.max_line + 1);
    auto at = std::max(begin, scanned_);
    while (at < end && bytes[at] != '\r' && bytes[at] != '\n') ++at;
    scanned_ = at;
    if (at > begin + limits_.max_line) return fail(parse_error::line_too_long, over("a line", limits_.max_line, " bytes"));
    if (at >= bytes.size()) return step::starved;
    if (auto const ended = line_end(bytes, at); ended != step::value) return ended;

    auto const result = line_value(bytes.substr(begin, at - begin), type);
    pos_ = at + line_end_size;
    return result;
}

parser::step parser::line_value(std::string_view text, reply_type type) {
    if (type == reply_type::real) {
        double value = 0;
        if (!read_double(text, value)) return fail(parse_error::bad_double, "not a double");
        add(type).real = value;
        return step::value;
    }
    if (type == reply_type::big_number && !is_big_number(text)) return fail(parse_error::bad_big_number, "not a big number");
    auto& node = add(type);
    node.offset = pos_ + 1;
    node.size = static_cast<std::uint32_t>(text.size());
    return step::value;
}

LOCKSTEP_HOT parser::step parser::integer(std::string_view bytes) {
    auto at = pos_ + 1;
    std::int64_t value = 0;
    switch (scan_integer(bytes, at, value)) {
        case scanned::whole: break;
        case scanned::starved: return step::starved;
        case scanned::malformed: return fail(parse_error::bad_integer, "not an integer");
        case scanned::no_line_end: return fail(parse_error::bad_line_end, "no LF after the CR of an integer");
        case scanned::too_large: return fail(parse_error::bad_integer, "an integer of more than 64 bits");
    }
    add(reply_type::integer).integer = value;
    pos_ = at;
    return step::value;
}

parser::step parser::boolean(std::string_view bytes) {
    auto const at = pos_ + 1;
    if (at >= bytes.size()) return step::starved;
    if (bytes[at] != 't' && bytes[at] != 'f') return fail(parse_error::bad_boolean, "a boolean that is not t or f");
    if (auto const ended = line_end(bytes, at + 1); ended != step::value) return ended;
    add(reply_type::boolean).integer = bytes[at] == 't' ? 1 : 0;
    pos_ = at + 1 + line_end_size;
    return step::value;
}

parser::step parser::null(std::string_view bytes) {
    if (auto const ended = line_end(bytes, pos_ + 1); ended != step::value) return ended;
    add(reply_type::null);
    pos_ += 1 + line_end_size;
    return step::value;
}

// A string of known length, or the head of one that comes in chunks.
LOCKSTEP_HOT parser::step parser::bulk(std::string_view bytes, reply_type type) {
    bool const plain = type == reply_type::bulk_string;
    if (plain && pos_ + 1 < bytes.size() && bytes[pos_ + 1] == '?') {
        if (auto const ended = line_end(bytes, pos_ + 2); ended != step::value) return ended;
        auto& node = add(type);
        node.gathered = gathered_ = true;
        node.offset = chunks_.size();
        pos_ += 2 + line_end_size;
        expecting_ = expecting::chunk;
        return step::next;
    }
    std::int64_t size = 0;
    if (auto const read = length(bytes, parse_error::bulk_too_long, limits_.max_bulk, size); read != step::value) return read;
    if (size < 0) {
        if (!plain) return fail(parse_error::bad_length, "a negative length");
        add(reply_type::null);
        pos_ = body_;
        return step::value;
    }
    if (type == reply_type::verbatim_string && size < static_cast<std::int64_t>(verbatim_prefix))
        return fail(parse_error::bad_verbatim, "a verbatim string too short for its format");
    body_type_ = type;
    auto const begun = begin_body(static_cast<std::size_t>(size), limits_.max_bulk, expecting::body);
    return begun == step::value ? body(bytes) : begun;
}

LOCKSTEP_HOT parser::step parser::body(std::string_view bytes) {
    auto const end = body_ + length_;
    if (bytes.size() <= end) return step::starved;
    if (auto const ended = line_end(bytes, end); ended != step::value) return ended;
    if (body_type_ == reply_type::verbatim_string && bytes[body_ + verbatim_prefix - 1] != ':')
        return fail(parse_error::bad_verbatim, "a verbatim string without a format");
    auto& node = add(body_type_);
    node.offset = body_;
    node.size = static_cast<std::uint32_t>(length_);
    pos_ = end + line_end_size;
    expecting_ = expecting::element;
    return step::value;
}

parser::step parser::chunk(std::string_view bytes) {
    if (pos_ >= bytes.size()) return step::starved;
    if (bytes[pos_] != ';') return fail(parse_error::bad_nesting, show(bytes[pos_]) + " where a chunk should be");
    std::int64_t size = 0;
    if (auto const read = length(bytes, parse_error::bulk_too_long, limits_.max_bulk, size); read != step::value) return read;
    if (size < 0) return fail(parse_error::bad_length, "a negative length");
    if (size == 0) {
        pos_ = body_;
        expecting_ = expecting::element;
        return step::value;
    }
    auto const room = limits_.max_bulk - nodes_.back().size;
    auto const begun = begin_body(static_cast<std::size_t>(size), room, expecting::chunk_body);
    return begun == step::value ? step::next : begun;
}

parser::step parser::chunk_body(std::string_view bytes) {
    auto const end = body_ + length_;
    if (bytes.size() <= end) return step::starved;
    if (auto const ended = line_end(bytes, end); ended != step::value) return ended;
    chunks_.append(bytes, body_, length_);
    nodes_.back().size += static_cast<std::uint32_t>(length_);
    pos_ = end + line_end_size;
    expecting_ = expecting::chunk;
    return step::next;
}

LOCKSTEP_HOT parser::step parser::aggregate(std::string_view bytes, reply_type type, frame_kind kind) {
    bool const may_stream = type != reply_type::push && kind != frame_kind::attribute;
    if (may_stream && pos_ + 1 < bytes.size() && bytes[pos_ + 1] == '?') {
        if (auto const ended = line_end(bytes, pos_ + 2); ended != step::value) return ended;
        pos_ += 2 + line_end_size;
        return open(type, frame_kind::streamed, 0);
    }
    std::int64_t count = 0;
    auto const read = length(bytes, parse_error::too_many_elements, limits_.max_elements, count);
    if (read != step::value) return read;
    if (count < 0) {
        if (type != reply_type::array) return fail(parse_error::bad_length, "a negative length");
        add(reply_type::null);
        pos_ = body_;
        return step::value;
    }
    auto const children = static_cast<std::size_t>(count) * (type == reply_type::map ? 2 : 1);
    if (children > limits_.max_elements - elements_)
        return fail(parse_error::too_many_elements, over("a message", limits_.max_elements, " elements"));
    elements_ += children;
    pos_ = body_;
    return open(type, kind, static_cast<std::uint32_t>(children));
}

LOCKSTEP_HOT parser::step parser::open(reply_type type, frame_kind kind, std::uint32_t children) {
    if (open_.size() >= limits_.max_depth) return fail(parse_error::too_deep, over("nesting", limits_.max_depth, " levels"));
    auto const index = static_cast<std::uint32_t>(nodes_.size());
    if (kind != frame_kind::attribute) add(type).size = children;
    if (children == 0 && kind != frame_kind::streamed) {
        if (kind == frame_kind::counted) return step::value;
        attributed_ = true;
        return step::next;
    }
    open_.push_back({index, children, kind});
    return step::next;
}

parser::step parser::end_of_stream(std::string_view bytes) {
    if (open_.empty() || open_.back().kind != frame_kind::streamed)
        return fail(parse_error::bad_nesting, "the end of a stream outside one");
    if (attributed_) return fail(parse_error::bad_nesting, "an attribute without a value");
    auto const index = open_.back().node;
    if (nodes_[index].type == reply_type::map && nodes_[index].size % 2 != 0)
        return fail(parse_error::bad_nesting, "a map with a key and no value");
    if (auto const ended = line_end(bytes, pos_ + 1); ended != step::value) return ended;
    nodes_[index].span = static_cast<std::uint32_t>(nodes_.size()) - index;
    open_.pop_back();
    pos_ += 1 + line_end_size;
    return step::value;
}

// A value is whole, and with it perhaps those around it.
LOCKSTEP_HOT parser::step parser::complete() {
    while (!open_.empty()) {
        auto& top = open_.back();
        if (top.kind == frame_kind::streamed) {
            if (++elements_ > limits_.max_elements)
                return fail(parse_error::too_many_elements, over("a message", limits_.max_elements, " elements"));
            ++nodes_[top.node].size;
            return step::next;
        }
        if (--top.left != 0) return step::next;
        auto const closed = top;
        open_.pop_back();
        if (closed.kind == frame_kind::attribute) {
            nodes_.resize(closed.node);
            attributed_ = true;
            return step::next;
        }
        nodes_[closed.node].span = static_cast<std::uint32_t>(nodes_.size()) - closed.node;
    }
    return step::ready;
}

// Reads the length or count behind the type byte; `body_` is then the first byte behind the line. -1 is left to the
// caller, who knows whether it means null here.
LOCKSTEP_HOT parser::step parser::length(std::string_view bytes, parse_error too_large, std::size_t most, std::int64_t& value) {
    body_ = pos_ + 1;
    switch (scan_integer(bytes, body_, value)) {
        case scanned::whole: break;
        case scanned::starved: return step::starved;
        case scanned::malformed: return fail(parse_error::bad_length, "not a length");
        case scanned::no_line_end: return fail(parse_error::bad_line_end, "no LF after the CR of a length");
        case scanned::too_large: value = std::numeric_limits<std::int64_t>::max(); break;
    }
    if (value < -1) return fail(parse_error::bad_length, "a negative length");
    if (value > 0 && static_cast<std::uint64_t>(value) > most)
        return fail(too_large, over(too_large == parse_error::bulk_too_long ? "a string" : "a message", most,
                                    too_large == parse_error::bulk_too_long ? " bytes" : " elements"));
    return step::value;
}

LOCKSTEP_HOT parser::step parser::line_end(std::string_view bytes, std::size_t at) {
    if (at < bytes.size() && bytes[at] != '\r') return fail(parse_error::bad_line_end, show(bytes[at]) + " instead of CR");
    if (at + 1 >= bytes.size()) return step::starved;
    if (bytes[at + 1] != '\n') return fail(parse_error::bad_line_end, show(bytes[at + 1]) + " instead of LF");
    return step::value;
}

LOCKSTEP_HOT parser::step parser::begin_body(std::size_t size, std::size_t limit, expecting what) {
    if (size > limit) return fail(parse_error::bulk_too_long, over("a string", limits_.max_bulk, " bytes"));
    if (body_ + size + line_end_size > limits_.max_message)
        return fail(parse_error::message_too_long, over("a message", limits_.max_message, " bytes"));
    length_ = size;
    expecting_ = what;
    return step::value;
}

[[gnu::cold, gnu::noinline]] parser::step parser::fail(parse_error error, std::string const& text) {
    status_ = status::failed;
    error_ = error;
    error_text_ = text + " (at byte " + std::to_string(pos_) + " of the message)";
    return step::failed;
}

LOCKSTEP_HOT detail::reply_node& parser::add(reply_type type) {
    attributed_ = false;
    auto& node = nodes_.emplace_back();
    node.type = type;
    return node;
}

void parser::start_message() noexcept {
    // Not right after a giant message but once one came that is none, so that giants in a row do not pay for it each time.
    if (nodes_.capacity() > kept_nodes && nodes_.size() < nodes_.capacity() / 8)
        std::vector<detail::reply_node>().swap(nodes_);  // assigning {} would keep the memory
    if (chunks_.capacity() > kept_text) std::string().swap(chunks_);
    nodes_.clear();
    open_.clear();
    chunks_.clear();
    pos_ = scanned_ = elements_ = 0;
    expecting_ = expecting::element;
    status_ = status::need_more;
    attributed_ = gathered_ = false;
}

// Texts from chunks lie in chunks_, the others in the bytes: bring them together behind one base.
void parser::finish_message(std::string_view bytes) {
    status_ = status::ready;
    base_ = bytes.data();
    if (!gathered_) return;
    for (auto& node : nodes_) {
        if (node.gathered || !reply_view{&node, base_}.is_text()) continue;
        auto const from = node.offset;
        node.offset = chunks_.size();
        chunks_.append(bytes, from, node.size);
    }
    base_ = chunks_.data();
}

std::size_t parser::bytes_missing() const noexcept {
    bool const known = expecting_ == expecting::body || expecting_ == expecting::chunk_body;
    auto const missing = known ? body_ + length_ + line_end_size - seen_ : 1;
    return std::min(missing, std::max(read_ahead, seen_));
}

void parser::reset() noexcept {
    start_message();
    error_ = parse_error::none;
    error_text_.clear();
    seen_ = 0;
}

std::size_t parser::memory() const noexcept {
    return nodes_.capacity() * sizeof(detail::reply_node) + open_.capacity() * sizeof(frame) + chunks_.capacity();
}

}  // namespace lockstep::resp
