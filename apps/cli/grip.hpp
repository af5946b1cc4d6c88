#pragma once

// What a job holds while its command runs, of whatever kind: a lease, or a leadership.

#include <lockstep/leadership.hpp>
#include <lockstep/lease.hpp>

#include <cstdint>
#include <memory>
#include <stop_token>
#include <utility>

namespace lockstep::cli {

class grip {
public:
    explicit grip(lease held) : held_(std::make_unique<of_lease>(std::move(held))) {}
    explicit grip(leadership held) : held_(std::make_unique<of_leader>(std::move(held))) {}

    std::uint64_t fence() const { return held_->fence(); }
    bool valid() const { return held_->valid(); }
    std::stop_token stop_token() const { return held_->stop_token(); }
    std::stop_token at_risk_token() const { return held_->at_risk_token(); }
    task<void> async_release() { return held_->async_release(); }

private:
    struct thing {
        virtual ~thing() = default;
        virtual std::uint64_t fence() const = 0;
        virtual bool valid() const = 0;
        virtual std::stop_token stop_token() const = 0;
        virtual std::stop_token at_risk_token() const = 0;
        virtual task<void> async_release() = 0;
    };
    struct of_lease final : thing {
        explicit of_lease(lease held) : is(std::move(held)) {}
        std::uint64_t fence() const override { return is.fence(); }
        bool valid() const override { return is.valid(); }
        std::stop_token stop_token() const override { return is.stop_token(); }
        std::stop_token at_risk_token() const override { return is.at_risk_token(); }
        task<void> async_release() override { return is.async_release(); }
        lease is;
    };
    struct of_leader final : thing {
        explicit of_leader(leadership held) : is(std::move(held)) {}
        std::uint64_t fence() const override { return is.term(); }
        bool valid() const override { return is.valid(); }
        std::stop_token stop_token() const override { return is.stop_token(); }
        std::stop_token at_risk_token() const override { return {}; }
        task<void> async_release() override { return is.async_resign(); }
        leadership is;
    };

    std::unique_ptr<thing> held_;
};

}  // namespace lockstep::cli
