// A semaphore that becomes smaller while others wait for more permits than are left, in both forms.
#include <lockstep/counting_semaphore.hpp>

#include "lease_support.hpp"
#include "support/fault_proxy.hpp"

#include <functional>
#include <future>

namespace lockstep::test {
namespace {

// In another thread, as both forms are waited for.
class attempt {
public:
    attempt(client& by, std::function<void()> call)
        : by_{by}, end_{std::async(std::launch::async, [call] { return ending_of(call); })} {}
    attempt(attempt const&) = delete;
    attempt& operator=(attempt const&) = delete;
    ~attempt() {
        if (end_.valid() && end_.wait_for(0s) != std::future_status::ready)
            by_.close();  // else it would go on for ever
    }

    bool ends() { return end_.wait_for(20s) == std::future_status::ready; }
    ending how() { return end_.get(); }

private:
    client& by_;
    std::future<ending> end_;
};

void expect_refusal(ending const& end) {
    EXPECT_EQ(end.reason, errc::invalid_argument);
    EXPECT_THAT(end.text, testing::HasSubstr("4 permits are wanted, and there are only 3"));
}

template <class Form>
class semaphore_resize : public testing::Test {
protected:
    static counting_semaphore create(client& by, std::int64_t permits) {
        // Nobody looks again within that time: who goes on was told.
        return counting_semaphore::create(by, "name", permits, {.lease = {.ttl = 120s}});
    }
    void resize(std::int64_t permits) {
        Form::run(
            a, [&] { return of_a.resize(permits); }, [&] { return of_a.async_resize(permits); });
    }
    static std::function<void()> acquiring(client& by, counting_semaphore& of, std::int64_t permits) {
        return [&by, &of, permits] {
            static_cast<void>(Form::run(
                by, [&] { return of.acquire(permits); }, [&] { return of.async_acquire(permits); }));
        };
    }
    static std::function<void()> trying(client& by, counting_semaphore& of, std::int64_t permits) {
        return [&by, &of, permits] {
            static_cast<void>(Form::run(
                by, [&] { return of.try_acquire_for(100s, permits); },
                [&] { return of.async_try_acquire_for(100s, permits); }));
        };
    }
    bool wait_for_waiting(std::int64_t count) {
        return eventually([&] { return pool_numbers(server, key).waiting == count; });
    }

    std::string const key = "lockstep:{name}:semaphore";
    redis_server server;
    fault_proxy proxy{server.address()};
    client a{server.url()};
    client b{proxy.url()};
    counting_semaphore of_a = create(a, 4);
    counting_semaphore of_b = create(b, 4);
    lease first = of_a.acquire(2);
};
TYPED_TEST_SUITE(semaphore_resize, forms, form_names);

TYPED_TEST(semaphore_resize, ends_those_who_want_more_than_there_are_and_the_others_go_on) {
    attempt many{this->b, this->acquiring(this->b, this->of_b, 4)};
    ASSERT_TRUE(this->wait_for_waiting(1));
    attempt limited{this->a, this->trying(this->a, this->of_a, 4)};
    ASSERT_TRUE(this->wait_for_waiting(2));
    attempt few{this->b, this->acquiring(this->b, this->of_b, 1)};
    ASSERT_TRUE(this->wait_for_waiting(3));
    this->resize(3);
    for (auto* const one : {&many, &limited}) {
        ASSERT_TRUE(one->ends());
        expect_refusal(one->how());
    }
    ASSERT_TRUE(few.ends());
    EXPECT_EQ(few.how().text, "");
    expect_refusal(ending_of(this->acquiring(this->b, this->of_b, 4)));
    EXPECT_TRUE(eventually([&] { return this->of_b.available() == 1; }));
    EXPECT_EQ(pool_numbers(this->server, this->key).waiting, 0);
}

TYPED_TEST(semaphore_resize, is_not_held_up_by_a_client_that_cannot_be_reached) {
    attempt many{this->b, this->acquiring(this->b, this->of_b, 4)};
    ASSERT_TRUE(this->wait_for_waiting(1));
    attempt few{this->a, this->acquiring(this->a, this->of_a, 1)};
    ASSERT_TRUE(this->wait_for_waiting(2));
    this->proxy.half_open();
    this->resize(3);
    ASSERT_TRUE(few.ends());
    EXPECT_EQ(few.how().text, "");
    this->proxy.heal();
    ASSERT_TRUE(many.ends());
    expect_refusal(many.how());
}

TYPED_TEST(semaphore_resize, ends_the_same_when_replies_are_lost) {
    for (int const lost : {1, 2}) {
        attempt many{this->b, this->acquiring(this->b, this->of_b, 4)};
        ASSERT_TRUE(this->wait_for_waiting(1));
        this->proxy.drop_replies(lost);
        this->resize(3);
        ASSERT_TRUE(many.ends());
        expect_refusal(many.how());
        this->proxy.heal();
        this->resize(4);
    }
}

TYPED_TEST(semaphore_resize, goes_on_for_who_hears_of_it_only_when_there_are_enough_again) {
    attempt many{this->b, this->acquiring(this->b, this->of_b, 4)};
    ASSERT_TRUE(this->wait_for_waiting(1));
    this->proxy.hold();
    this->resize(3);
    this->resize(4);
    EXPECT_EQ(pool_numbers(this->server, this->key).waiting, 0);
    this->proxy.heal();
    ASSERT_TRUE(this->wait_for_waiting(1));
    this->first.release();
    ASSERT_TRUE(many.ends());
    EXPECT_EQ(many.how().text, "");
}

TYPED_TEST(semaphore_resize, counts_with_the_number_it_is_created_with_anew) {
    this->server.must({"DEL", this->key});
    EXPECT_EQ(ending_of(this->acquiring(this->b, this->of_b, 4)).reason, errc::not_found);
    auto again = this->create(this->a, 3);
    expect_refusal(ending_of(this->acquiring(this->b, this->of_b, 4)));
    EXPECT_EQ(ending_of(this->acquiring(this->b, this->of_b, 3)).text, "");
}

}  // namespace
}  // namespace lockstep::test
