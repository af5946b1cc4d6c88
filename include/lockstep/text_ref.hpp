#pragma once

/// `text_ref`: a text that belongs to the caller, as a member of options. It is a `std::string_view` that cannot be made from a string that is gone
/// at the end of the statement:
///
///     jobs.schedule("mail", letter, {.key = "order-7"});       // a literal
///     auto const key = "order-" + id;
///     jobs.schedule("mail", letter, {.key = key});             // a named string, or a string_view
///     jobs.schedule("mail", letter, {.key = "order-" + id});   // does not compile: name the string first
///
/// The text must live until the function that takes the options has returned; for a coroutine, until the task has ended. Objects that use it for
/// longer (a worker its name) copy it.

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

namespace lockstep {

// Not a std::string: options are used inside `co_await f({...})`, where g++ 12 destroys members that are not trivial twice.
class text_ref {
public:
    constexpr text_ref() noexcept = default;
    constexpr text_ref(char const* text) noexcept : view_(text == nullptr ? std::string_view{} : std::string_view{text}) {}
    constexpr text_ref(std::string_view text) noexcept : view_(text) {}
    text_ref(std::string const& text) noexcept : view_(text) {}
    text_ref(std::string&&) = delete;        // the options would refer to a string that is gone: give the string a name first
    text_ref(std::string const&&) = delete;  // the same
    text_ref(std::nullptr_t) = delete;

    constexpr std::string_view view() const noexcept { return view_; }
    constexpr operator std::string_view() const noexcept { return view_; }
    constexpr bool empty() const noexcept { return view_.empty(); }
    constexpr std::size_t size() const noexcept { return view_.size(); }

    template <class T>
        requires(std::is_convertible_v<T const&, std::string_view>)
    friend constexpr bool operator==(text_ref a, T const& b) noexcept {
        return a.view_ == std::string_view{b};
    }

private:
    std::string_view view_{};
};
static_assert(std::is_trivially_destructible_v<text_ref> && std::is_trivially_copyable_v<text_ref>);

}  // namespace lockstep
