#pragma once

/// What the server answered.
///
/// `reply_view` is a handle of two pointers into bytes that someone else keeps: pass it by value, drop it before they
/// change. `reply` owns its bytes, in one allocation. Both give the same access, and both turn into C++ values:
///
///     lockstep::reply answer = client.command("HGETALL", "user:7");
///     auto user = answer.as<std::map<std::string, std::string>>();
///     for (lockstep::reply_view element : client.command("SMEMBERS", "tags")) std::cout << element.text() << '\n';
///
/// Failure: asking for another type than the server sent throws `conversion_error`, saying what came instead; `as<T>()`
/// of an error reply throws `server_error` with the server's text. Which `T` there are: <lockstep/reply_convert.hpp>.
/// Threads: a reply does not change, so any number of threads may read it.

#include <lockstep/error.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <type_traits>
#include <utility>

namespace lockstep {

/// `error` is both the one-line and the counted form; `real` is RESP3's double. Those from `array` on have children.
enum class reply_type : std::uint8_t {
    null,
    simple_string,
    bulk_string,
    verbatim_string,
    big_number,
    error,
    integer,
    real,
    boolean,
    array,
    set,
    map,
    push
};

/// How a reply becomes a `T`. Specialise it for your own types: `static T convert(reply_view)`.
template <typename T> struct reply_converter;

class reply;

/// An index that stands in the program's text. A list is as long as the server makes it, and finding an element steps over those before it: a loop over
/// `list[i]` would take the square of its length. So that does not compile; walk the list: `for (auto element : list)`.
class fixed_index {
public:
    template <std::integral Number>
    consteval fixed_index(Number value) : value_(static_cast<std::size_t>(value)) {
        if (value < 0) throw "an index is not negative";
    }
    constexpr std::size_t value() const noexcept { return value_; }

private:
    std::size_t value_;
};

namespace detail {

/// One value. The nodes of a reply lie in one array, a parent before its children; texts lie elsewhere, at `offset`.
struct reply_node {
    std::uint32_t size = 0;  ///< bytes of text, or number of children (a map of n pairs has 2n)
    std::uint32_t span = 1;  ///< nodes from this one to its next sibling: skips a subtree in one step
    reply_type type = reply_type::null;
    bool gathered = false;  ///< for the parser: the text came in chunks and lies in its own buffer
    union {
        std::uint64_t offset = 0;
        std::int64_t integer;
        double real;
    };
};
static_assert(sizeof(reply_node) <= 24 && std::is_trivially_copyable_v<reply_node>);

inline constexpr reply_node null_node{};

template <typename T> inline constexpr bool keeps_errors = requires { requires reply_converter<T>::keeps_errors; };

/// Whether a `T` points into the reply it was made from, itself or in its elements.
template <typename T> inline constexpr bool borrows = false;
template <template <typename...> typename Outer, typename... Inner>
inline constexpr bool borrows<Outer<Inner...>> = (borrows<Inner> || ...);

}  // namespace detail

class reply_view {
public:
    class iterator;

    reply_view() noexcept = default;  ///< null
    reply_view(detail::reply_node const* node, char const* base) noexcept : node_(node), base_(base) {}

    reply_type type() const noexcept { return node_->type; }
    bool is_null() const noexcept { return type() == reply_type::null; }
    bool is_error() const noexcept { return type() == reply_type::error; }
    bool is_text() const noexcept { return type() >= reply_type::simple_string && type() <= reply_type::error; }
    bool is_aggregate() const noexcept { return type() >= reply_type::array; }

    // Each throws conversion_error on any other type; as<T>() is the lenient form.
    std::string_view text() const;  ///< of strings, big numbers and errors
    std::int64_t integer() const;
    double real() const;
    bool boolean() const;

    std::string_view error_prefix() const noexcept;  ///< first word of an error: "WRONGTYPE", "MOVED"; else empty
    std::string_view text_format() const noexcept;   ///< of a verbatim string: "txt", "mkd"; else empty

    std::size_t size() const noexcept { return is_aggregate() ? node_->size : 0; }  ///< children; a map of n pairs: 2n
    bool empty() const noexcept { return size() == 0; }
    reply_view operator[](fixed_index index) const;  ///< a child: `address[0]`; `conversion_error` where there are fewer
    inline iterator begin() const noexcept;          ///< children in order, a map's as key, value, key, value
    inline iterator end() const noexcept;

    /// The value beside `key` in a map, or in the flat array that stands for one in RESP2; null where there is none.
    reply_view find(std::string_view key) const noexcept;

    template <typename T> T as() const {
        if constexpr (!detail::keeps_errors<T>) throw_if_error();
        return reply_converter<T>::convert(*this);
    }

    void throw_if_error() const {
        if (is_error()) throw_error_reply();
    }

    /// Same types and values all the way down; nan equals nan, so that a copy equals its original.
    friend bool operator==(reply_view left, reply_view right) noexcept;

protected:
    [[noreturn]] void throw_error_reply() const;
    std::string_view raw() const noexcept { return {base_ + node_->offset, node_->size}; }

    detail::reply_node const* node_ = &detail::null_node;
    char const* base_ = "";

    friend class reply;
};

class reply_view::iterator {
public:
    using iterator_concept = std::forward_iterator_tag;
    using iterator_category = std::input_iterator_tag;  // it yields values, not references
    using value_type = reply_view;
    using reference = reply_view;
    using pointer = void;
    using difference_type = std::ptrdiff_t;

    iterator() noexcept = default;
    iterator(detail::reply_node const* node, char const* base) noexcept : node_(node), base_(base) {}

    reply_view operator*() const noexcept { return {node_, base_}; }
    iterator& operator++() noexcept { return node_ += node_->span, *this; }
    iterator operator++(int) noexcept { return std::exchange(*this, iterator{node_ + node_->span, base_}); }
    bool operator==(iterator const& other) const noexcept { return node_ == other.node_; }

private:
    detail::reply_node const* node_ = nullptr;
    char const* base_ = nullptr;
};

reply_view::iterator reply_view::begin() const noexcept { return {node_ + 1, base_}; }
reply_view::iterator reply_view::end() const noexcept { return {node_ + (is_aggregate() ? node_->span : 1), base_}; }

/// A `reply_view` together with what it looks into. Null, and without an allocation, when default-constructed or moved from.
class reply : public reply_view {
public:
    reply() noexcept = default;
    explicit reply(reply_view source);
    reply(reply const& other) : reply(other.view()) {}
    reply(reply&& other) noexcept : reply_view(std::exchange(other.view_part(), reply_view{})) {}
    reply& operator=(reply other) noexcept { return std::swap(view_part(), other.view_part()), *this; }
    ~reply();

    reply_view view() const& noexcept { return *this; }
    reply_view view() && = delete;

    template <typename T> T as() const& { return reply_view::as<T>(); }
    template <typename T> T as() && {
        static_assert(!detail::borrows<T>, "this T would point into a reply that is about to end: keep the reply first");
        if constexpr (std::is_same_v<T, reply>)
            return std::move(*this);
        else
            return reply_view::as<T>();
    }

private:
    reply_view& view_part() noexcept { return *this; }
};

}  // namespace lockstep

#include <lockstep/reply_convert.hpp>
