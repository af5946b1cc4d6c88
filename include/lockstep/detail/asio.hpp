#pragma once

// The machinery of <lockstep/asio.hpp>. Nothing here is for users.

#include <lockstep/client.hpp>
#include <lockstep/error.hpp>
#include <lockstep/task.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/thread_pool.hpp>

#include <coroutine>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace lockstep::detail {


client make_client_on(boost::asio::any_io_executor executor, std::function<bool()> running_here, client_options const& options);

/// `void(std::exception_ptr, T)`, with an optional where a T can't be made out of nothing for the case of an error.
template <class T>
struct completion {
    using value = std::conditional_t<std::is_default_constructible_v<T>, T, std::optional<T>>;
    using signature = void(std::exception_ptr, value);
};
template <>
struct completion<void> {
    using signature = void(std::exception_ptr);
};

template <class T, class Handler>
void call(Handler handler, std::exception_ptr error, stored<T> value) {
    if constexpr (std::is_void_v<T>) {
        std::move(handler)(std::move(error));
    } else {
        using result = typename completion<T>::value;
        std::move(handler)(std::move(error), value ? result{std::move(*value)} : result{});
    }
}

struct initiate_task {
    template <class Handler, class T>
    void operator()(Handler handler, task<T> work) const {
        auto state = std::make_shared<cancel_state>();
        auto slot = boost::asio::get_associated_cancellation_slot(handler);
        if (slot.is_connected()) {
            slot.assign([weak = std::weak_ptr<cancel_state>{state}](boost::asio::cancellation_type) {
                if (auto const alive = weak.lock()) alive->request();
            });
        }
        auto executor = boost::asio::get_associated_executor(handler);
        auto finish = [handler = std::move(handler), slot, guard = boost::asio::make_work_guard(executor)](
                          std::exception_ptr error, stored<T> value) mutable {
            auto const where = guard.get_executor();
            auto complete = [handler = std::move(handler), slot, error = std::move(error), value = std::move(value)]() mutable {
                if (slot.is_connected()) slot.clear();
                call<T>(std::move(handler), std::move(error), std::move(value));
            };
            // Without an executor of its own a handler runs where the task ended. Otherwise it is always posted, so that it never runs
            // inside the call that started it, nor inside a turn of the client.
            if constexpr (std::is_same_v<std::remove_cv_t<decltype(where)>, boost::asio::system_executor>) {
                complete();
            } else {
                boost::asio::post(where, std::move(complete));
            }
            guard.reset();
        };
        run_root(std::move(work), std::move(state), std::move(finish));
    }
};

/// Where a coroutine waits in `resume_on`; shared by the coroutine, which may be destroyed meanwhile, and what was posted.
struct moving {
    std::coroutine_handle<> awaiting;
    bool dropped = false;
};

class move_here {
public:
    explicit move_here(std::shared_ptr<moving> place) noexcept : place_(std::move(place)) {}
    move_here(move_here&&) noexcept = default;
    ~move_here() {
        if (!place_) return;
        place_->dropped = true;
        go_on();
    }
    void operator()() { go_on(); }

private:
    void go_on() {
        auto const place = std::move(place_);
        if (auto const awaiting = std::exchange(place->awaiting, nullptr)) awaiting.resume();
    }
    std::shared_ptr<moving> place_;
};

template <class Executor>
class move_to {
public:
    explicit move_to(Executor executor) : executor_(std::move(executor)) {}
    move_to(move_to const&) = delete;
    ~move_to() {
        if (place_) place_->awaiting = nullptr;
    }
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> awaiting) {
        place_ = std::make_shared<moving>(moving{awaiting});
        // A guard, and here: when the coroutine goes on before `post` has returned, this object may be gone, and the context must not
        // run dry (and be destroyed) while this thread is still inside it.
        auto const work = boost::asio::make_work_guard(executor_);
        boost::asio::post(work.get_executor(), move_here{place_});
    }
    void await_resume() const {
        if (place_->dropped) throw cancelled_error("the executor's context was destroyed");
    }

private:
    Executor executor_;
    std::shared_ptr<moving> place_;
};

/// Asks whether the calling thread runs the executor's context. Empty where that can't be known.
template <class Executor>
std::function<bool()> runs_here(Executor const& executor);

template <class... Kinds, class Executor>
std::function<bool()> runs_one_of(Executor const& executor) {
    std::function<bool()> found;
    (void)((executor.template target<Kinds>() != nullptr && (found = runs_here(*executor.template target<Kinds>()), true)) || ...);
    return found;
}

template <class Executor>
std::function<bool()> runs_here(Executor const& executor) {
    namespace asio = boost::asio;
    using context = asio::io_context::executor_type;
    using pool = asio::thread_pool::executor_type;
    if constexpr (requires { executor.get_inner_executor(); }) {
        return runs_here(executor.get_inner_executor());  // a strand: its context is what counts
    } else if constexpr (requires { executor.running_in_this_thread(); }) {
        return [executor] { return executor.running_in_this_thread(); };
    } else if constexpr (requires { executor.template target<context>(); }) {
        return runs_one_of<context, pool, asio::strand<context>, asio::strand<pool>, asio::strand<asio::any_io_executor>>(executor);
    } else {
        return {};
    }
}

}  // namespace lockstep::detail
