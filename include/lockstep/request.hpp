#pragma once

/// Raw Redis commands as values: one command, a pipeline, a transaction.
///
///     client.execute(request{"GET", "key"}.within(500ms).repeatable());
///     auto replies = client.execute(pipeline{}.add("SET", "a", 1).add("INCR", "a"));
///
/// Arguments are strings, bytes or numbers; they are copied and encoded at once, binary safe. A command that would break the shared
/// connection for others (SUBSCRIBE, MULTI, BLPOP, MONITOR ...) is refused with the name of what to use instead.

#include <lockstep/reply.hpp>
#include <lockstep/task.hpp>

#include <array>
#include <charconv>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace lockstep {

namespace detail {

/// One argument as text; numbers bring their digits along.
class argument {
public:
    argument(std::string_view text) noexcept : text_(text) {}
    argument(std::string const& text) noexcept : text_(text) {}
    argument(char const* text) noexcept : text_(text) {}
    argument(std::span<std::byte const> bytes) noexcept : text_(reinterpret_cast<char const*>(bytes.data()), bytes.size()) {}
    template <class T>
        requires(std::integral<T> || std::floating_point<T>) && (!std::same_as<T, bool>) && (!std::same_as<T, char>)
    argument(T number) noexcept {
        size_ = static_cast<std::size_t>(std::to_chars(digits_.data(), digits_.data() + digits_.size(), number).ptr - digits_.data());
    }

    std::string_view view() const noexcept { return size_ == 0 ? text_ : std::string_view{digits_.data(), size_}; }

private:
    std::string_view text_;
    std::size_t size_ = 0;
    std::array<char, 32> digits_;
};

std::string encode_command(std::span<argument const> arguments);

/// Throws `invalid_argument_error` when it is negative.
std::chrono::milliseconds checked_time(std::chrono::milliseconds time);

template <class T>
task<T> converted(task<reply> answer) {
    reply const value = co_await std::move(answer);
    if constexpr (!std::is_void_v<T>) co_return value.as<T>();
}

/// The reply as a `T`.
template <class T>
task<T> as_task_of(task<reply> answer) {
    if constexpr (std::is_same_v<T, reply>) {
        return answer;
    } else {
        return converted<T>(std::move(answer));
    }
}

}  // namespace detail

/// One command.
class request {
public:
    template <class... Args>
    explicit request(std::string_view name, Args const&... args) {
        std::array<detail::argument, 1 + sizeof...(Args)> const arguments{detail::argument{name}, detail::argument{args}...};
        encoded_ = detail::encode_command(arguments);
    }
    /// From a list that is known at run time only. Throws `invalid_argument_error` when it is empty.
    static request from(std::span<std::string_view const> arguments);
    static request from(std::span<detail::argument const> arguments);

    /// Its time, instead of the client's `command_timeout`; 0: that. Throws `invalid_argument_error` when it is negative.
    request& within(std::chrono::milliseconds time) & { return time_ = detail::checked_time(time), *this; }
    request&& within(std::chrono::milliseconds time) && { return std::move(within(time)); }
    /// It may run twice: when the connection breaks before the reply came, it is sent again instead of ending in `indeterminate_error`.
    request& repeatable() & noexcept { return repeatable_ = true, *this; }
    request&& repeatable() && noexcept { return repeatable_ = true, std::move(*this); }

    std::string const& encoded() const noexcept { return encoded_; }
    std::chrono::milliseconds time() const noexcept { return time_; }  ///< zero: the client's default
    bool is_repeatable() const noexcept { return repeatable_; }

private:
    request() = default;
    std::string encoded_;
    std::chrono::milliseconds time_{0};
    bool repeatable_ = false;
};

namespace detail {

/// What pipeline and transaction share.
template <class Derived>
class command_list {
public:
    template <class... Args>
    Derived& add(std::string_view name, Args const&... args) & {
        commands_.emplace_back(name, args...);
        return static_cast<Derived&>(*this);
    }
    template <class... Args>
    Derived&& add(std::string_view name, Args const&... args) && {
        return std::move(add(name, args...));
    }
    Derived& within(std::chrono::milliseconds time) & { return time_ = checked_time(time), static_cast<Derived&>(*this); }
    Derived&& within(std::chrono::milliseconds time) && { return std::move(within(time)); }
    Derived& repeatable() & noexcept { return repeatable_ = true, static_cast<Derived&>(*this); }
    Derived&& repeatable() && noexcept { return std::move(repeatable()); }

    std::size_t size() const noexcept { return commands_.size(); }
    std::vector<request> const& commands() const noexcept { return commands_; }
    std::chrono::milliseconds time() const noexcept { return time_; }
    bool is_repeatable() const noexcept { return repeatable_; }

private:
    std::vector<request> commands_;
    std::chrono::milliseconds time_{0};
    bool repeatable_ = false;
};

}  // namespace detail

/// Commands that leave together and run in order, with others' between them. Each has its own reply, errors included as replies.
/// The order holds as long as the server takes them: one that it refuses for the moment (LOADING, BUSY, TRYAGAIN ...) is sent again a
/// little later, by itself, so others may run before it. So too in a Cluster for commands of several slots. Where the order matters, use
/// a transaction.
class pipeline : public detail::command_list<pipeline> {};

/// Commands that run together, with nobody's between them (MULTI, EXEC). In a Cluster all keys must share a slot.
class transaction : public detail::command_list<transaction> {};

}  // namespace lockstep
