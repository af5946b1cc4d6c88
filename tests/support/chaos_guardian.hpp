// What a thread of chaos_worker does with what it holds, whatever that is: it asks for it, uses what is guarded, says when it was sure, and
// expects to be told of a loss.
#pragma once

#include "chaos_actor.hpp"

#include <lockstep/error.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <type_traits>

namespace lockstep::chaos {

class guardian {
public:
    explicit guardian(actor& self) : self_{self} {}

    /// What `take` gets, with some time and a stop token; nothing: it was reported why.
    template <class Take>
    auto ask(Take const& take) -> std::invoke_result_t<Take const&, std::chrono::milliseconds, std::stop_token> {
        auto const kind = self_.below(8);
        second_thoughts const mind{kind == 2 ? std::optional{self_.up_to(60)} : std::nullopt};
        try {
            auto held = take(kind == 0 ? std::chrono::milliseconds{0} : kind == 1 ? self_.up_to(100) : std::chrono::milliseconds{3'000}, mind.token());
            if (!held) self_.report("none");
            return held;
        } catch (cancelled_error const&) {
            self_.report("none", "cancelled");
        } catch (error const& problem) {
            self_.report("failed", problem.code().message() + ": " + problem.what());
        }
        return std::nullopt;
    }

    /// Uses what `held` guards, for a moment or for longer than it lasts without renewals.
    template <class Held>
    void guard(Held const& held, std::string const& mode = {}) {
        auto const valid = [&] {
            if constexpr (requires { held.is_valid(); }) {
                return held.is_valid();
            } else {
                return held.valid();
            }
        };
        guard(valid, held.stop_token(), mode);
    }

private:
    void guard(std::function<bool()> const& valid, std::stop_token const& lost, std::string const& mode);
    bool is_sure(std::function<bool()> const& valid);
    void expect_to_be_told(std::stop_token const& lost);

    actor& self_;
};

}  // namespace lockstep::chaos
