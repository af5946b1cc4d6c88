// The lease of an idempotency record while its work runs.
#include <lockstep/event.hpp>
#include <lockstep/idempotency.hpp>

#include "integration/topology_support.hpp"
#include "support/contract.hpp"
#include "support/eventually.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <thread>

namespace lockstep::test {
namespace {

using namespace std::chrono_literals;

std::string const record = "lockstep:{name}:idempotency:7";

class idempotency_leases : public contract {
protected:
    bool do_it(client& by, idempotency& of, std::function<void()> const& work) {
        auto const as_task = [&work]() -> task<void> {
            work();
            co_return;
        };
        return run(
            by, [&] { return of.run("7", work); }, [&] { return of.async_run("7", as_task); });
    }
    std::int64_t left() { return server.must({"PTTL", record}).integer; }
};
LOCKSTEP_CONTRACT(idempotency_leases);

TEST_P(idempotency_leases, are_renewed_however_long_the_work_takes) {
    idempotency of_a{a, "name", {.lease = 300ms}};
    idempotency of_b{b, "name"};
    event go_on{b, "go on"};
    std::function<task<void>()> const waits = [&]() -> task<void> {
        auto waiting = go_on.async_wait();
        co_await std::move(waiting);
    };
    std::thread holder{[&] {
        if (GetParam().how == form::blocking) of_a.run("7", [&] { go_on.wait(); });
        else sync_wait(of_a.async_run("7", waits));
    }};
    EXPECT_TRUE(eventually([&] { return left() > 0; }));
    int renewals = 0;
    auto before = left();
    EXPECT_TRUE(eventually([&] {
        auto const now = left();
        if (now > before + 50) ++renewals;
        before = now;
        return renewals == 4;
    })) << "four thirds of its lease";
    EXPECT_THROW(do_it(b, of_b, [] {}), busy_error);
    go_on.set();
    holder.join();
    EXPECT_FALSE(do_it(b, of_b, [] { ADD_FAILURE() << "it was done"; }));
    EXPECT_GT(left(), 3'600'000) << "it is remembered";
}

TEST_P(idempotency_leases, end_when_the_work_has_thrown) {
    idempotency of_a{a, "name", {.lease = 300ms}};
    EXPECT_THROW(do_it(a, of_a, [] { throw std::runtime_error("no"); }), std::runtime_error);
    EXPECT_FALSE(eventually([&] { return left() > 0; }, 250ms)) << "nobody renews what was given back";
}

}  // namespace
}  // namespace lockstep::test
