#include "redis/sentinel.hpp"

#include "redis/command.hpp"
#include "redis/single_router.hpp"

#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <vector>

namespace lockstep::redis {
namespace {

constexpr std::string_view switch_channel = "+switch-master";

std::uint16_t port_of(std::string_view text) {
    std::uint16_t port = 0;
    std::from_chars(text.data(), text.data() + text.size(), port);
    return port;
}

/// The conversation with the Sentinels.
class watch final : public std::enable_shared_from_this<watch>, listener {
public:
    watch(std::shared_ptr<reactor> home, connection_settings settings, location const& where)
        : home_(std::move(home)), name_(where.master_name), known_(where.endpoints), patience_(settings.connect_timeout / 2) {
        handshake greeting;
        greeting.user = where.sentinel_user;
        greeting.password = [where] { return sentinel_password_of(where); };
        greeting.client_name = "lockstep-sentinel";
        greeting.check_server = false;
        // A Sentinel that does not answer is soon left for the next one.
        settings.connect_timeout = patience_;
        settings.reconnect_max = std::min(settings.reconnect_max, std::chrono::milliseconds{200});
        way_ = std::make_unique<single_router>(home_, settings, greeting, [this] { return next(); });
    }
    virtual ~watch() = default;

    /// Who is master now? Throws `unavailable_error` when nobody knows.
    static task<endpoint> master(std::shared_ptr<watch> self);

    void listen(std::function<void(endpoint const&)> moved) {
        moved_ = std::move(moved);
        way_->listening().add(channel_kind::plain, std::string{switch_channel}, *this);
    }
    void close() noexcept {
        moved_ = nullptr;
        way_->close();
    }
    /// The master it named turned out to be none.
    void doubt() noexcept {
        if (++doubts_ % 3 == 0) way_->relocate("it keeps naming a server that can't be used as master");
    }
    void trust() noexcept { doubts_ = 0; }

private:
    task<endpoint> next() {
        auto where = known_[turn_++ % known_.size()];
        return found(std::move(where));
    }
    static task<endpoint> found(endpoint where) { co_return where; }

    void learn(reply_view others) {
        for (auto const one : others) {
            if (!one.is_aggregate()) continue;
            endpoint const where{.host = one.find("ip").as<std::string>(), .port = port_of(one.find("port").as<std::string>()), .path = {}};
            if (where.port != 0 && std::find(known_.begin(), known_.end(), where) == known_.end()) known_.push_back(where);
        }
    }

    void message(std::string_view, std::string_view payload) noexcept override {
        // <name> <old ip> <old port> <new ip> <new port>
        std::vector<std::string> words;
        for (std::size_t begin = 0; begin <= payload.size();) {
            auto const end = std::min(payload.find(' ', begin), payload.size());
            words.emplace_back(payload.substr(begin, end - begin));
            begin = end + 1;
        }
        if (words.size() == 5 && words[0] == name_ && moved_) moved_({.host = words[3], .port = port_of(words[4]), .path = {}});
    }
    void subscribed() noexcept override {}
    void interrupted() noexcept override {}
    void refused(errc reason, std::string_view why) noexcept override {
        if (reason != errc::cancelled) log(log_level::warning, fmt::format("Sentinel does not announce failovers to us: {}", why));
    }

    std::shared_ptr<reactor> home_;
    std::string name_;
    std::vector<endpoint> known_;
    std::chrono::milliseconds patience_;
    std::size_t turn_ = 0;
    unsigned doubts_ = 0;
    std::unique_ptr<single_router> way_;
    std::function<void(endpoint const&)> moved_;
};

task<endpoint> watch::master(std::shared_ptr<watch> self) {
    std::string trouble = "none answered";
    std::shared_ptr<router> const way{self, self->way_.get()};
    for (std::size_t tries = self->known_.size() + 1; tries != 0; --tries) {
        command_terms const terms{.deadline = self->home_->now() + self->patience_, .repeatable = true, .errors_are_replies = true};
        try {
            auto const address = co_await run(way, terms, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", self->name_);
            if (address.is_aggregate() && address.size() == 2) {
                auto const others = co_await run(way, terms, "SENTINEL", "SENTINELS", self->name_);
                self->learn(others);
                co_return endpoint{.host = address[0].as<std::string>(), .port = port_of(address[1].text()), .path = {}};
            }
            trouble = address.is_error() ? std::string{address.text()} : fmt::format("it does not know a master named '{}'", self->name_);
        } catch (unavailable_error const& problem) {
            trouble = problem.what();
        } catch (timeout_error const& problem) {
            trouble = problem.what();
        }
        self->way_->relocate(trouble);
    }
    throw unavailable_error(fmt::format("no Sentinel could name the master '{}': {}", self->name_, trouble));
}

class sentinel_router final : public single_router {
public:
    sentinel_router(std::shared_ptr<reactor> home, connection_settings const& settings, handshake const& greeting, std::shared_ptr<watch> sentinels)
        : single_router(std::move(home), settings, greeting, [sentinels] { return watch::master(sentinels); }), watch_(std::move(sentinels)) {}

    void submit(operation& request) noexcept override {
        if (!std::exchange(listening_to_failovers_, true)) {
            watch_->listen([this](endpoint const& master) {
                if (master != peer()) relocate(fmt::format("Sentinel announced a new master, {}", to_string(master)));
            });
        }
        single_router::submit(request);
    }
    void close() noexcept override {
        watch_->close();
        single_router::close();
    }

private:
    void connected(connection& at) noexcept override {
        watch_->trust();
        single_router::connected(at);
    }
    void failed(connection&) noexcept override { watch_->doubt(); }

    std::shared_ptr<watch> watch_;
    bool listening_to_failovers_ = false;
};

}  // namespace

std::unique_ptr<router> make_sentinel_router(std::shared_ptr<reactor> home, connection_settings const& settings, handshake const& greeting,
                                             location const& where) {
    auto sentinels = std::make_shared<watch>(home, settings, where);
    return std::make_unique<sentinel_router>(std::move(home), settings, greeting, std::move(sentinels));
}

}  // namespace lockstep::redis
