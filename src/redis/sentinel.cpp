#include "redis/sentinel.hpp"

#include "redis/command.hpp"
#include "redis/sentinel_replies.hpp"
#include "redis/single_router.hpp"

#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

namespace lockstep::redis {
namespace {

constexpr std::size_t most_known = 1'000;  // Sentinels: nobody has so many
constexpr std::string_view switch_channel = "+switch-master";
// The Sentinel that leads a failover says so earlier, when it knows the new master and has yet to tell the replicas.
constexpr std::string_view promotion_channel = "+promoted-slave";

/// The one Sentinel that is asked at the moment. When none can be reached, whoever waits hears of it at once.
class sentinel_link final : public single_router {
public:
    using single_router::single_router;
    /// So many attempts without success mean that none can be reached.
    void allow(std::size_t failures) noexcept { allowed_ = failures; }

private:
    void connected(connection& at) noexcept override {
        failures_ = refusals_ = 0;
        single_router::connected(at);
    }
    void refused(connection& at, errc reason, std::string_view why) noexcept override {
        ++refusals_;
        single_router::refused(at, reason, why);
    }
    // When all have refused us, the next question tries again, and nothing else.
    bool wanted(connection&) noexcept override { return refusals_ < allowed_; }
    void failed(connection& at) noexcept override {
        if (++failures_ < allowed_) return;
        failures_ = 0;
        operation_list waiting;
        at.take_waiting(waiting);
        std::string const why = at.last_trouble();
        while (!waiting.empty()) {
            auto& request = waiting.front();
            release(request);
            end(request, errc::unavailable, why);
        }
    }

    std::size_t allowed_ = 1;
    std::size_t failures_ = 0;
    std::size_t refusals_ = 0;
};

/// The conversation with the Sentinels.
class watch final : public std::enable_shared_from_this<watch>, listener {
public:
    using report = std::function<void(endpoint const&)>;

    watch(std::shared_ptr<reactor> home, connection_settings settings, location const& where)
        : home_(std::move(home)), name_(where.master_name), known_(where.endpoints), patience_(settings.connect_timeout / 2) {
        // A Sentinel that does not answer is soon left for the next one.
        settings.connect_timeout = patience_;
        settings.reconnect_max = std::min(settings.reconnect_max, std::chrono::milliseconds{200});
        settings.keepalive_timeout = std::min(settings.keepalive_timeout, std::chrono::milliseconds{2'000});
        way_ = std::make_unique<sentinel_link>(home_, settings, sentinel_greeting(where), [this] { return next(); });
        way_->allow(known_.size());
    }
    virtual ~watch() = default;

    /// Who is master now? Throws `unavailable_error` when nobody knows.
    static task<endpoint> master(std::shared_ptr<watch> self);

    /// From now on `moved` hears of failovers.
    void listen(report moved) {
        if (moved_ || closed_) return;
        moved_ = std::move(moved);
        for (auto const channel : {switch_channel, promotion_channel}) way_->listening().add(channel_kind::plain, std::string{channel}, *this);
    }
    /// An announcement may have been missed: asks, and reports a master that is newer than the one last named.
    void look_again() {
        if (!closed_ && !std::exchange(looking_, true)) start(look(shared_from_this()), [](std::exception_ptr) {});
    }
    void close() noexcept {
        closed_ = true;
        moved_ = nullptr;
        way_->close();
    }
    /// The master it named turned out to be none.
    void doubt() noexcept {
        if (++doubts_ % 3 == 0) way_->relocate("it keeps naming a server that can't be used as master");
    }
    void trust() noexcept { doubts_ = 0; }

private:
    /// A master, and the age of that knowledge: Sentinels count each failover, and one that lags behind has a smaller number.
    struct answer {
        endpoint where;
        std::uint64_t epoch = 0;
    };
    static task<answer> ask(std::shared_ptr<watch> self);
    static task<void> look(std::shared_ptr<watch> self);

    task<endpoint> next() {
        auto where = known_[turn_++ % known_.size()];
        return found(std::move(where));
    }
    static task<endpoint> found(endpoint where) { co_return where; }

    void learn(reply_view others) {
        if (!others.is_aggregate()) return;
        for (auto& where : read_sentinels(others)) {
            if (known_.size() >= most_known) break;
            if (std::find(known_.begin(), known_.end(), where) == known_.end()) known_.push_back(std::move(where));
        }
        way_->allow(known_.size());
    }

    void message(std::string_view channel, std::string_view payload) noexcept override {
        if (channel == promotion_channel) return look_again();
        if (auto master = read_switch(payload, name_); master && moved_) moved_(*std::move(master));
    }
    void subscribed() noexcept override {
        refusal_.clear();
        look_again();
    }
    void interrupted() noexcept override {}
    void refused(errc reason, std::string_view why) noexcept override {
        if (reason == errc::cancelled || refusal_ == why) return;
        refusal_ = why;
        log(log_level::warning, fmt::format("Sentinel does not announce failovers to us: {}", why));
    }

    std::shared_ptr<reactor> home_;
    std::string name_;
    std::vector<endpoint> known_;
    std::chrono::milliseconds patience_;
    std::size_t turn_ = 0;
    unsigned doubts_ = 0;
    std::uint64_t epoch_ = 0;  // of the master last named
    std::string refusal_;      // logged already
    bool looking_ = false;
    bool closed_ = false;
    std::unique_ptr<sentinel_link> way_;
    report moved_;
};

task<watch::answer> watch::ask(std::shared_ptr<watch> self) {
    std::string trouble = "none answered";
    std::optional<answer> older;  // of a Sentinel that lags behind; believed when no other knows more
    std::shared_ptr<router> const way{self, self->way_.get()};
    for (std::size_t tries = self->known_.size() + 1; tries != 0; --tries) {
        command_terms const terms{.deadline = self->home_->now() + self->patience_, .repeatable = true, .errors_are_replies = true};
        std::vector<task<reply>> questions;  // they leave together, so that the answers belong together
        questions.push_back(run(way, terms, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", self->name_));
        questions.push_back(run(way, terms, "SENTINEL", "MASTER", self->name_));
        questions.push_back(run(way, terms, "SENTINEL", "SENTINELS", self->name_));
        bool unreachable = false;
        try {
            auto const answers = co_await when_all(std::move(questions));
            auto const& address = answers[0];
            if (auto const master = read_master(address)) {
                self->learn(answers[2]);
                auto const epoch = read_epoch(answers[1]);
                answer const named{.where = *master, .epoch = epoch};
                if (epoch >= self->epoch_) co_return named;
                if (!older || epoch > older->epoch) older = named;
                trouble = "it has not heard of the last failover";
            } else {
                trouble = address.is_error() ? std::string{address.text()} : fmt::format("it does not know a master named '{}'", self->name_);
            }
        } catch (unavailable_error const& problem) {
            trouble = problem.what();
            unreachable = true;
        } catch (timeout_error const& problem) {
            trouble = problem.what();
        }
        if (unreachable) break;
        self->way_->relocate(trouble);
    }
    if (older) co_return *older;
    throw unavailable_error(fmt::format("no Sentinel could name the master '{}': {}", self->name_, trouble));
}

task<endpoint> watch::master(std::shared_ptr<watch> self) {
    auto const named = co_await ask(self);
    self->epoch_ = named.epoch;
    co_return named.where;
}

task<void> watch::look(std::shared_ptr<watch> self) {
    try {
        auto const named = co_await ask(self);
        if (named.epoch > self->epoch_ && self->moved_) self->moved_(named.where);
    } catch (error const&) {
        // The next subscription, or the next connection to the master, asks again.
    }
    self->looking_ = false;
}

class sentinel_router final : public single_router {
public:
    sentinel_router(std::shared_ptr<reactor> home, connection_settings const& settings, handshake const& greeting, std::shared_ptr<watch> sentinels)
        : single_router(std::move(home), settings, greeting, [this] { return locate(); }), watch_(std::move(sentinels)) {}

    void close() noexcept override {
        watch_->close();
        single_router::close();
    }

private:
    task<endpoint> locate() {
        watch_->listen([this](endpoint const& master) {
            if (master != peer()) relocate(fmt::format("Sentinel announced a new master, {}", to_string(master)));
        });
        return watch::master(watch_);
    }
    void connected(connection& at) noexcept override {
        watch_->trust();
        single_router::connected(at);
    }
    void failed(connection&) noexcept override { watch_->doubt(); }
    void silent(connection&) noexcept override { watch_->look_again(); }

    std::shared_ptr<watch> watch_;
};

}  // namespace

handshake sentinel_greeting(location const& where) {
    handshake greeting;
    greeting.user = where.sentinel_user;
    greeting.password = [where] { return sentinel_password_of(where); };
    greeting.client_name = "lockstep-sentinel";
    greeting.check_server = false;
    return greeting;
}

std::unique_ptr<router> make_sentinel_router(std::shared_ptr<reactor> home, connection_settings const& settings, handshake const& greeting,
                                             location const& where) {
    auto sentinels = std::make_shared<watch>(home, settings, where);
    return std::make_unique<sentinel_router>(std::move(home), settings, greeting, std::move(sentinels));
}

}  // namespace lockstep::redis
