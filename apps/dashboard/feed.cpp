#include "dashboard/feed.hpp"

#include "dashboard/text.hpp"

#include <boost/asio/post.hpp>
#include <boost/json.hpp>

#include <exception>

namespace lockstep::dashboard {

namespace {

using std::chrono::steady_clock;
constexpr std::chrono::seconds between_samples{2};
constexpr std::chrono::seconds patience{15};  // a page that is loaded again comes back sooner than this
constexpr std::size_t most_samples = 1800;    // an hour

}  // namespace

void feed::join(listener& page) {
    pages_.insert(&page);
    wake();
}

void feed::leave(listener& page) {
    pages_.erase(&page);
    if (pages_.empty()) alone_since_ = steady_clock::now();
}

std::shared_ptr<std::string const> feed::message(std::string const& seen) {
    auto const version = state_.version();
    if (!cached_ || cached_seen_ != seen || cached_version_ != version) {
        cached_ = std::make_shared<std::string const>(state_.message(seen));
        cached_seen_ = seen;
        cached_version_ = version;
    }
    return cached_;
}

std::int64_t feed::now_ms() const {
    auto const since = steady_clock::now() - updated_at_;
    return state_.at_ms() + std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
}

std::string feed::samples() const {
    std::string all{"["};
    for (auto const& one : samples_) all += (all.size() == 1 ? "" : ",") + one;
    return all + ']';
}

void feed::announce_audit() { tell("audit", "{}"); }

std::shared_ptr<void> feed::close() {
    closed_ = true;
    timer_.cancel();
    for (auto* const page : std::exchange(pages_, {})) page->closed();
    std::lock_guard const lock{newest_mutex_};
    if (auto begun = std::exchange(begun_, nullptr)) watch_ = std::move(begun);
    return std::exchange(watch_, nullptr);
}

void feed::wake() {
    if (closed_) return;
    if (!watch_ && !starting_) start_watch();
    if (ticking_) return;
    ticking_ = true;
    sample();
    look_at_jobs();
    tick();
}

// Every two seconds while there is somebody: sample, and see that the watch runs.
void feed::tick() {
    timer_.expires_after(between_samples);
    timer_.async_wait([self = shared_from_this()](boost::system::error_code const& failure) {
        if (failure || self->closed_) return;
        if (self->pages_.empty() && steady_clock::now() - self->alone_since_ > patience) {
            self->ticking_ = false;
            self->stop_watch();
            return;
        }
        if (!self->watch_ && !self->starting_) self->start_watch();
        self->sample();
        self->look_at_jobs();
        self->tick();
    });
}

void feed::start_watch() {
    starting_ = true;
    boost::asio::post(workers_, [self = shared_from_this()] {
        std::shared_ptr<void> made;
        std::optional<std::string> why;
        try {
            made = self->from_.watch([weak = self->weak_from_this()](snapshot const& now) {
                if (auto const still = weak.lock()) still->take(now);
            });
        } catch (std::exception const& failure) {
            why = failure.what();
        }
        {
            // Not in the message: one that nobody reads any more would end the watch while the I/O is taken down.
            std::lock_guard const lock{self->newest_mutex_};
            self->begun_ = std::move(made);
        }
        boost::asio::post(self->io_, [self, why = std::move(why)] {
            self->starting_ = false;
            if (self->closed_) return;
            {
                std::lock_guard const lock{self->newest_mutex_};
                self->watch_ = std::exchange(self->begun_, nullptr);
            }
            if (why && !self->ready_) self->troubled(why);  // later the watch says so, and says when it is over
        });
    });
}

void feed::stop_watch() {
    // Ending one waits for its handler.
    boost::asio::post(workers_, [ended = std::exchange(watch_, nullptr)] {});
    ready_ = false;  // what is there has grown old: the next page waits for the first news
    before_.reset();
}

void feed::take(snapshot const& now) {
    auto copy = std::make_shared<snapshot const>(now);
    bool const first = [&] {
        std::lock_guard const lock{newest_mutex_};
        return !std::exchange(newest_, std::move(copy));
    }();
    if (first) boost::asio::post(io_, [self = shared_from_this()] { self->apply(); });
}

void feed::apply() {
    std::shared_ptr<snapshot const> now;
    {
        std::lock_guard const lock{newest_mutex_};
        now = std::exchange(newest_, nullptr);
    }
    if (closed_ || !now) return;
    if (!now->trouble.empty()) return troubled(now->trouble);  // what it holds is old, or nothing at all
    updated_at_ = steady_clock::now();
    bool const news = state_.update(*now);
    troubled(std::nullopt);
    if (!news && ready_) return;
    ready_ = true;
    auto const all = pages_;  // one that is slow may leave
    for (auto* const page : all)
        if (pages_.contains(page)) page->state_changed();
}

void feed::sample() {
    if (sampling_ || closed_) return;
    sampling_ = true;
    boost::asio::post(workers_, [self = shared_from_this()] {
        std::optional<name_statistics> total;
        std::optional<std::string> why;
        try {
            auto all = self->from_.statistics({});
            total = all.empty() ? name_statistics{} : std::move(all.front());
        } catch (std::exception const& failure) {
            why = failure.what();
        }
        boost::asio::post(self->io_, [self, total = std::move(total), why = std::move(why)] {
            self->sampling_ = false;
            if (self->closed_) return;
            if (why && !self->ready_) self->troubled(why);  // later the watch says so, and says when it is over
            if (total && self->ready_) self->sampled(*total);
        });
    });
}

// It keeps what the plots of jobs show. What goes wrong there is told to who asks for them.
void feed::look_at_jobs() {
    if (looking_ || closed_) return;
    looking_ = true;
    boost::asio::post(workers_, [self = shared_from_this()] {
        try {
            self->from_.jobs().look();
        } catch (std::exception const&) {
        }
        boost::asio::post(self->io_, [self] { self->looking_ = false; });
    });
}

void feed::sampled(name_statistics const& total) {
    auto const now = steady_clock::now();
    boost::json::object point{{"at_ms", now_ms()},
                              {"objects", state_.objects()},
                              {"holds", state_.holds()},
                              {"waiting", state_.waiting()},
                              {"stale", state_.stale()},
                              {"clients", state_.clients()},
                              {"acquisitions", total.acquisitions},
                              {"timeouts", total.timeouts},
                              {"losses", total.losses},
                              {"wait_p99_us", total.waited.p99.count()},
                              {"held_p99_us", total.held.p99.count()}};
    if (before_ && total.acquisitions >= before_->acquisitions) {
        double const seconds = std::chrono::duration<double>(now - before_at_).count();
        auto const rate = [&](std::uint64_t is, std::uint64_t was) {
            return is >= was && seconds > 0 ? static_cast<double>(is - was) / seconds : 0.0;
        };
        point["acquired_per_s"] = rate(total.acquisitions, before_->acquisitions);
        point["timed_out_per_s"] = rate(total.timeouts, before_->timeouts);
        // The counts are of all time; what was added since says how long waits are now.
        auto const sum = [](timing const& t) {
            return static_cast<double>(t.count) * static_cast<double>(t.average.count());
        };
        if (total.waited.count > before_->waited.count)
            point["wait_average_us"] =
                std::max(0.0, (sum(total.waited) - sum(before_->waited)) /
                                  static_cast<double>(total.waited.count - before_->waited.count));
    }
    before_ = total;
    before_at_ = now;
    samples_.push_back(boost::json::serialize(point));
    if (samples_.size() > most_samples) samples_.pop_front();
    tell("sample", samples_.back());
}

void feed::troubled(std::optional<std::string> why) {
    if (why) why = readable(*why);
    if (trouble_ == why) return;
    trouble_ = std::move(why);
    auto const all = pages_;
    for (auto* const page : all)
        if (pages_.contains(page)) page->trouble_changed();
}

void feed::tell(std::string_view event, std::string const& data) {
    auto const all = pages_;
    for (auto* const page : all)
        if (pages_.contains(page)) page->send(event, data);
}

}  // namespace lockstep::dashboard
