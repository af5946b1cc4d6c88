#include <lockstep/consumer.hpp>

#include "base/host.hpp"
#include "base/random.hpp"
#include "messaging/consumer_state.hpp"
#include "messaging/stream_state.hpp"

#include <lockstep/error.hpp>
#include <lockstep/log.hpp>
#include <lockstep/stream.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

namespace lockstep {

using namespace std::chrono_literals;

namespace {

consumer_options checked(detail::keyed const& at, delivery_handler const& handler, consumer_options options) {
    using detail::require;
    detail::require_consumer_name(at, "group", options.group);
    if (options.name.empty()) options.name = fmt::format("{}:{}:{}", base::host_name(), ::getpid(), base::random_id());
    detail::require_consumer_name(at, "consumer", options.name);
    require(at, handler.function || handler.coroutine, "the consumer has no handler");
    require(at, options.start == "$" || detail::is_stream_id(options.start), fmt::format("start is \"0\", \"$\" or an id, not '{}'", options.start));
    require(at, options.concurrency >= 1 && options.concurrency <= 10'000, "concurrency must be 1 to 10000");
    require(at, options.batch >= 1 && options.batch <= 10'000, "batch must be 1 to 10000");
    if (options.max_pending == 0) options.max_pending = 10 * std::max(options.batch, options.concurrency);
    require(at, options.max_pending >= options.concurrency && options.max_pending <= 1'000'000,
            fmt::format("max_pending must be 0 (10 times the larger of batch and concurrency) or at least concurrency ({}) and at most 1000000, not {}", options.concurrency,
                        options.max_pending));
    require(at, options.idle_limit >= 100ms && options.idle_limit <= 24h, "idle_limit must be 100 ms to 24 hours");
    require(at, options.max_deliveries >= 0, "max_deliveries must be 0 (for ever) or more");
    require(at, options.retry_min >= 1ms && options.retry_min <= options.retry_max && options.retry_max <= 24h,
            "retry_min must be at least 1 ms and at most retry_max, which must be at most 24 hours");
    require(at, options.max_dead_letters >= 0, "max_dead_letters must be 0 (all) or more");
    require(at, options.dead_retention >= 0ms && options.dead_retention <= 24h * 36'500, "dead_retention must be 0 (for ever) to 100 years");
    require(at, options.stop_limit >= 0ms && options.stop_limit <= 24h, "stop_limit must be 0 to 24 hours");
    return options;
}

task<consumer_backlog> ask_backlog(std::shared_ptr<detail::consumer_state> self) {
    consumer_backlog made;
    try {
        auto asking = self->at().command({"XINFO", "GROUPS", self->at().key()});
        auto const said = co_await std::move(asking);
        for (auto const one : said) {
            if (one.find("name").text() != self->options().group) continue;
            made.pending = one.find("pending").integer();
            if (auto const lag = one.find("lag"); !lag.is_null()) made.lag = lag.integer();
        }
    } catch (server_error const& problem) {
        if (problem.text().find("no such key") == std::string::npos) throw;
    }
    co_return made;
}

}  // namespace

std::shared_ptr<detail::consumer_state> detail::begin_consumer(keyed at, delivery_handler handler, consumer_options options, std::chrono::milliseconds grace) {
    options = checked(at, handler, std::move(options));
    auto made = std::make_shared<consumer_state>(std::move(at), std::move(handler), std::move(options), grace);
    made->begin();
    return made;
}

consumer::consumer(client& by, std::string_view stream, delivery_handler handler, consumer_options options)
    : consumer(detail::begin_consumer(detail::keyed{by, stream, "stream"}, std::move(handler), std::move(options))) {}
consumer::consumer(client& by, lockstep::key const& stream, delivery_handler handler, consumer_options options)
    : consumer(detail::begin_consumer(detail::keyed::at_key(by, stream, "stream"), std::move(handler), std::move(options))) {}
consumer::consumer(std::shared_ptr<detail::consumer_state> state) noexcept : state_(std::move(state)) {}

consumer& consumer::operator=(consumer&& other) noexcept {
    std::swap(state_, other.state_);
    return *this;
}

consumer::~consumer() {
    if (!state_ || !state_->at().owner()->same_process()) return;
    try {
        stop();
    } catch (std::exception const& problem) {
        log(log_level::warning, fmt::format("the consumer of stream '{}' ends without being waited for: {}", state_->at().name(), problem.what()));
        state_->abandon();
        state_->let_go();
    }
}

void consumer::stop(std::stop_token token) {
    state_->at().require_blocking();
    try {
        sync_wait(detail::consumer_state::stop(state_, std::nullopt), std::move(token));
    } catch (cancelled_error const&) {
        state_->abandon();
    }
    state_->join();
}

bool consumer::stop(std::chrono::milliseconds limit, std::stop_token token) {
    state_->at().require_blocking();
    detail::require(state_->at(), limit >= 0ms && limit <= 24h, "the limit of a stop must be 0 to 24 hours");
    bool all_ended = false;
    try {
        all_ended = sync_wait(detail::consumer_state::stop(state_, limit), std::move(token));
    } catch (cancelled_error const&) {
        state_->abandon();
        state_->return_running();
    }
    if (all_ended) state_->join();
    return all_ended;
}

namespace {
task<void> stop_in_full(std::shared_ptr<detail::consumer_state> state) {
    auto stopping = detail::consumer_state::stop(std::move(state), std::nullopt);
    co_await std::move(stopping);
}
}  // namespace

task<void> consumer::async_stop() { return stop_in_full(state_); }
task<bool> consumer::async_stop(std::chrono::milliseconds limit) {
    detail::require(state_->at(), limit >= 0ms && limit <= 24h, "the limit of a stop must be 0 to 24 hours");
    return detail::consumer_state::stop(state_, limit);
}

consumer_statistics consumer::statistics() const { return state_->statistics(); }
task<consumer_backlog> consumer::async_backlog() const { return ask_backlog(state_); }
consumer_backlog consumer::backlog() const {
    state_->at().require_blocking();
    return sync_wait(async_backlog());
}
std::string const& consumer::name() const noexcept { return state_->options().name; }

}  // namespace lockstep
