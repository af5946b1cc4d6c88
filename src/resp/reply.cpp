#include <lockstep/reply.hpp>

#include "resp/shared_message.hpp"

#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>
#include <memory>
#include <new>
#include <utility>

namespace lockstep {
namespace {

std::string counted(char const* what, std::size_t size) { return what + std::to_string(size); }

// Never the text itself: it may be a secret, and this goes into messages that get logged.
std::string describe(reply_view given) {
    switch (given.type()) {
        case reply_type::null: return "null";
        case reply_type::simple_string:
        case reply_type::bulk_string:
        case reply_type::verbatim_string: return counted("a string of ", given.text().size()) + " bytes";
        case reply_type::big_number: return counted("a big number of ", given.text().size()) + " digits";
        case reply_type::error: return "an error";
        case reply_type::integer: return "the integer " + std::to_string(given.integer());
        case reply_type::real: return "a double";
        case reply_type::boolean: return "a boolean";
        case reply_type::array: return counted("an array of ", given.size());
        case reply_type::set: return counted("a set of ", given.size());
        case reply_type::map: return counted("a map of ", given.size() / 2);
        case reply_type::push: return counted("a push of ", given.size());
    }
    return "unknown";
}

bool same_value(detail::reply_node const& left, detail::reply_node const& right) {
    switch (left.type) {
        case reply_type::integer:
        case reply_type::boolean: return left.integer == right.integer;
        case reply_type::real: return left.real == right.real || (std::isnan(left.real) && std::isnan(right.real));
        default: return left.size == right.size && left.span == right.span;
    }
}

template <typename Number> bool whole(std::string_view text, Number& number) {
    auto const [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
    return failure == std::errc{} && end == text.data() + text.size();
}

bool is_sequence(reply_view source) { return source.is_aggregate() && source.type() != reply_type::map; }

// An error is text too, but no conversion may take it for a value.
bool is_value_text(reply_view source) { return source.is_text() && !source.is_error(); }

template <typename Number> std::string range_of(Number least, Number most) {
    return "an integer from " + std::to_string(least) + " to " + std::to_string(most);
}

}  // namespace

std::string_view reply_view::text() const {
    if (!is_text()) detail::throw_mismatch(*this, "a string");
    return type() == reply_type::verbatim_string ? raw().substr(4) : raw();  // the parser saw to those four bytes
}

std::int64_t reply_view::integer() const {
    if (type() != reply_type::integer) detail::throw_mismatch(*this, "an integer");
    return node_->integer;
}

double reply_view::real() const {
    if (type() != reply_type::real) detail::throw_mismatch(*this, "a double");
    return node_->real;
}

bool reply_view::boolean() const {
    if (type() != reply_type::boolean) detail::throw_mismatch(*this, "a boolean");
    return node_->integer != 0;
}

std::string_view reply_view::error_prefix() const noexcept {
    if (!is_error()) return {};
    return raw().substr(0, raw().find(' '));
}

std::string_view reply_view::text_format() const noexcept {
    if (type() != reply_type::verbatim_string) return {};
    return raw().substr(0, 3);
}

reply_view reply_view::operator[](fixed_index index) const {
    if (index.value() >= size()) throw conversion_error("the reply is " + describe(*this) + ", with no element " + std::to_string(index.value()));
    return *std::next(begin(), static_cast<std::ptrdiff_t>(index.value()));
}

reply_view reply_view::find(std::string_view key) const noexcept {
    if (type() != reply_type::map && (type() != reply_type::array || size() % 2 != 0)) return {};
    for (auto i = begin(); i != end();) {
        auto const name = *i++;
        auto const value = *i++;
        if (is_value_text(name) && name.text() == key) return value;
    }
    return {};
}

void reply_view::throw_error_reply() const { throw server_error(std::string(raw())); }

// Two trees are the same when their flat arrays are: types, sizes and spans fix the shape.
bool operator==(reply_view left, reply_view right) noexcept {
    if (left.node_->span != right.node_->span) return false;
    for (std::uint32_t i = 0; i != left.node_->span; ++i) {
        reply_view const a{left.node_ + i, left.base_}, b{right.node_ + i, right.base_};
        if (a.type() != b.type() || !same_value(*a.node_, *b.node_)) return false;
        if (a.is_text() && a.raw() != b.raw()) return false;
    }
    return true;
}

// The block is the nodes, then the texts, which need no alignment; or instead of them what keeps the message that they lie in, which `gathered` of the root tells.
reply::reply(reply_view source) {
    if (source.is_null()) return;
    auto const count = source.node_->span;
    std::size_t bytes = 0;
    for (std::uint32_t i = 0; i != count; ++i) {
        reply_view const part{source.node_ + i, source.base_};
        if (part.is_text()) bytes += part.raw().size();
    }
    if (auto owner = resp::shared_message::owner_of(source.base_, bytes)) {
        auto* const shared = ::operator new(count * sizeof(detail::reply_node) + sizeof owner);
        auto* const nodes = static_cast<detail::reply_node*>(shared);
        std::memcpy(shared, source.node_, count * sizeof(detail::reply_node));
        new (nodes + count) std::shared_ptr<void const>{std::move(owner)};
        nodes->gathered = true;
        node_ = nodes;
        base_ = source.base_;
        return;
    }
    auto* const block = ::operator new(count * sizeof(detail::reply_node) + bytes);
    auto* const nodes = static_cast<detail::reply_node*>(block);
    auto* const texts = static_cast<char*>(block) + count * sizeof(detail::reply_node);
    std::memcpy(block, source.node_, count * sizeof(detail::reply_node));
    std::size_t offset = 0;
    for (std::uint32_t i = 0; i != count; ++i) {
        reply_view const part{source.node_ + i, source.base_};
        if (!part.is_text()) continue;
        part.raw().copy(texts + offset, part.raw().size());
        nodes[i].offset = offset;
        offset += part.raw().size();
    }
    nodes->gathered = false;
    node_ = nodes;
    base_ = texts;
}

reply::~reply() {
    if (node_ == &detail::null_node) return;
    auto* const nodes = const_cast<detail::reply_node*>(node_);
    if (nodes->gathered) std::destroy_at(reinterpret_cast<std::shared_ptr<void const>*>(nodes + nodes->span));
    ::operator delete(nodes);
}

namespace detail {

void throw_mismatch(reply_view given, std::string const& wanted) {
    throw conversion_error("the reply is " + describe(given) + ", not " + wanted);
}

std::string_view to_text(reply_view source) {
    if (!is_value_text(source)) throw_mismatch(source, "a string");
    return source.text();
}

std::int64_t to_signed(reply_view source, std::int64_t least, std::int64_t most) {
    std::int64_t value = 0;
    if (source.type() == reply_type::integer)
        value = source.integer();
    else if (!is_value_text(source) || !whole(source.text(), value))
        throw_mismatch(source, "an integer");
    if (value < least || value > most) throw_mismatch(source, range_of(least, most));
    return value;
}

std::uint64_t to_unsigned(reply_view source, std::uint64_t most) {
    std::uint64_t value = 0;
    if (source.type() == reply_type::integer && source.integer() >= 0)
        value = static_cast<std::uint64_t>(source.integer());
    else if (!is_value_text(source) || !whole(source.text(), value))
        throw_mismatch(source, range_of<std::uint64_t>(0, most));
    if (value > most) throw_mismatch(source, range_of<std::uint64_t>(0, most));
    return value;
}

double to_real(reply_view source) {
    if (source.type() == reply_type::real) return source.real();
    if (source.type() == reply_type::integer) return static_cast<double>(source.integer());
    double value = 0;
    if (!is_value_text(source) || !whole(source.text(), value)) throw_mismatch(source, "a number");
    return value;
}

bool to_bool(reply_view source) {
    if (source.type() == reply_type::boolean) return source.boolean();
    if (source.type() != reply_type::integer || (source.integer() != 0 && source.integer() != 1))
        throw_mismatch(source, "a boolean, 0 or 1");
    return source.integer() == 1;
}

void require_sequence(reply_view source) {
    if (!is_sequence(source)) throw_mismatch(source, "an array");
}

void require_sequence(reply_view source, std::size_t size) {
    if (!is_sequence(source) || source.size() != size) throw_mismatch(source, counted("an array of ", size));
}

void require_pairs(reply_view source) {
    bool const flat = source.type() == reply_type::array && source.size() % 2 == 0;
    if (source.type() != reply_type::map && !flat) throw_mismatch(source, "a map");
}

}  // namespace detail
}  // namespace lockstep
