// What a primitive promises, written once and run in both forms on every topology.
//
//     class latch_contract : public contract {
//     protected:
//         void wait(client& by, latch& which) {
//             run(by, [&] { which.wait(); }, [&] { return which.async_wait(); });
//         }
//         latch of_a{a, "name", 3};
//     };
//     LOCKSTEP_CONTRACT(latch_contract);
//     TEST_P(latch_contract, opens_when_it_is_counted_down) { ... }
//
// `a` and `b` are clients as in two processes. `server` is the one that has the objects called "name"; a test that uses other names asks
// server_of(name). The servers are shared by the tests of a suite and emptied before each. ctest runs each test on a standalone
// server as a process of its own; all tests of a suite on Sentinel are one process, and so are those on a cluster.
#pragma once

#include "deployment.hpp"
#include "forms.hpp"

#include <lockstep/client.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>

namespace lockstep::test {

enum class form { blocking, coroutine };

struct setting {
    topology where = topology::standalone;
    form how = form::blocking;
};

class contract : public testing::TestWithParam<setting> {
public:
    static void TearDownTestSuite() { servers_.reset(); }

protected:
    /// Both clients are connected to all masters, of a cluster too (a tag for each): a test may allow less time than that takes on a busy machine.
    contract() {
        for (char const* const tag : {"{name}", "{0}", "{3}"}) {
            a.command("EXISTS", tag);
            b.command("EXISTS", tag);
        }
    }

    /// call() in the blocking form, async_call() in the other; the value of either.
    template <class F, class G>
    auto run(client& by, F call, G async_call) {
        bool const blocks = GetParam().how == form::blocking;
        if constexpr (std::is_void_v<std::invoke_result_t<F>>) {
            if (blocks) return call();
            coroutine::await(by, [&] { return as_true(async_call()); });
        } else {
            return blocks ? call() : coroutine::await(by, std::move(async_call));
        }
    }

    // What all that can be held has in common. `what`: how many permits, for a semaphore.
    template <class T, class... What>
    auto acquire(client& by, T&& of, What... what) {
        return run(
            by, [&] { return of.acquire(what...); }, [&] { return of.async_acquire(what...); });
    }
    template <class T>
    auto acquire(client& by, T&& of, std::stop_token token) {
        return run(
            by, [&] { return of.acquire(token); }, [&] { return with_stop_token(of.async_acquire(), token); });
    }
    template <class T, class... What>
    auto try_acquire(client& by, T&& of, What... what) {
        return run(
            by, [&] { return of.try_acquire(what...); }, [&] { return of.async_try_acquire(what...); });
    }
    template <class T>
    auto try_acquire_for(client& by, T&& of, std::chrono::milliseconds time) {
        return run(
            by, [&] { return of.try_acquire_for(time); }, [&] { return of.async_try_acquire_for(time); });
    }
    template <class T>
    void release(client& by, T& held) {
        run(
            by, [&] { held.release(); }, [&] { return held.async_release(); });
    }

    /// What the client was told before this has arrived when it returns.
    static void catch_up(client& by) { by.command("EXISTS", "{name}"); }

    std::string url() const { return servers_->url(); }
    redis_server& server_of(std::string const& name) { return servers_->server_of(name); }
    std::size_t masters() { return servers_->masters(); }

private:
    static redis_server& prepare() {
        if (!servers_ || servers_->which() != GetParam().where)
            servers_ = std::make_unique<deployment>(GetParam().where);
        servers_->empty();
        return servers_->server_of("name");
    }
    static inline std::unique_ptr<deployment> servers_{};

protected:
    redis_server& server = prepare();
    client a{servers_->url()};
    client b{servers_->url()};
};

inline auto in_both_forms(topology where) {
    return testing::Values(setting{where, form::blocking}, setting{where, form::coroutine});
}

inline std::string form_name(testing::TestParamInfo<setting> const& of) {
    return of.param.how == form::blocking ? blocking::name : coroutine::name;
}

}  // namespace lockstep::test

#define LOCKSTEP_CONTRACT(suite)                                                                 \
    INSTANTIATE_TEST_SUITE_P(standalone, suite, in_both_forms(topology::standalone), form_name); \
    INSTANTIATE_TEST_SUITE_P(sentinel, suite, in_both_forms(topology::sentinel), form_name);     \
    INSTANTIATE_TEST_SUITE_P(cluster, suite, in_both_forms(topology::cluster), form_name)
