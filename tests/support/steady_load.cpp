#include "steady_load.hpp"

#include "eventually.hpp"

#include <atomic>
#include <coroutine>
#include <mutex>
#include <thread>
#include <utility>

namespace lockstep::test {

class steady_load::crew : public std::enable_shared_from_this<crew> {
public:
    crew(client& through, load_options options) : client_{through}, options_{options}, workers_(options.workers) {}

    void begin();
    bool wait_for_fresh_round(std::chrono::milliseconds timeout);
    load_report finish();

private:
    struct worker {
        std::size_t number = 0;
        std::string key{};  // each in a slot of its own
        std::uint64_t tokens = 0;
        std::size_t counted = 0;   // INCRs that were answered
        std::size_t doubtful = 0;  // and those that may have run
        std::size_t paired = 0;    // transactions that were answered
        std::size_t doubtful_pairs = 0;
        std::atomic<std::uint64_t> begun{0};
        std::atomic<std::uint64_t> done{0};
    };

    // Where workers wait for their next round. They resume on the pace maker's thread.
    struct gate {
        crew& owner;
        bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<> waiting) const {
            std::lock_guard const guard{owner.mutex_};
            owner.waiting_.push_back(waiting);
        }
        void await_resume() const noexcept {}
    };

    task<void> work(std::shared_ptr<crew> self, worker& me);
    task<void> repeat(worker& me, request command, std::string expected, bool exactly);
    task<void> read_back(worker& me, std::string token);
    task<void> count(worker& me);
    task<void> count_pair(worker& me);
    void set_pace();
    std::string next_token(worker& me);
    void check_counters();
    void check(worker const& me, char const* counter, std::size_t least, std::size_t most);

    void note_answer() { answered_.fetch_add(1, std::memory_order_relaxed); }
    void note_wrong(std::string text) {
        std::lock_guard const guard{mutex_};
        report_.wrong.push_back(std::move(text));
    }
    void note_failed(std::string text) {
        std::lock_guard const guard{mutex_};
        report_.failed.push_back(std::move(text));
    }
    // True: it may have run.
    bool note_once(errc reason) {
        std::lock_guard const guard{mutex_};
        ++report_.once[reason];
        return reason == errc::indeterminate;
    }

    client& client_;
    load_options options_;
    std::vector<worker> workers_;
    std::atomic<bool> stopping_{false};
    std::atomic<std::size_t> running_{0};
    std::atomic<std::size_t> answered_{0};
    std::mutex mutex_;
    std::vector<std::coroutine_handle<>> waiting_;
    load_report report_;
    std::jthread pace_maker_;
};

void steady_load::crew::begin() {
    running_ = workers_.size();
    for (std::size_t i = 0; i < workers_.size(); ++i) {
        workers_[i].number = i;
        workers_[i].key = "{load-" + std::to_string(i) + "}";
        start(work(shared_from_this(), workers_[i]),
              [self = shared_from_this()](std::exception_ptr) { --self->running_; });
    }
    pace_maker_ = std::jthread{[this] { set_pace(); }};
}

void steady_load::crew::set_pace() {
    while (running_ != 0) {
        std::vector<std::coroutine_handle<>> due;
        {
            std::lock_guard const guard{mutex_};
            due.swap(waiting_);
        }
        for (auto const& one : due) one.resume();
        std::this_thread::sleep_for(options_.pace);
    }
}

std::string steady_load::crew::next_token(worker& me) { return me.key + " " + std::to_string(++me.tokens); }

task<void> steady_load::crew::work(std::shared_ptr<crew> self, worker& me) {
    while (!self->stopping_) {
        co_await gate{*self};
        ++me.begun;
        auto token = next_token(me);
        co_await repeat(me, request{"ECHO", token}, token, true);
        token = next_token(me);
        co_await repeat(me, request{"SET", me.key + "value", token}, "OK", true);
        co_await read_back(me, token);
        if (me.begun % 4 == 0) {
            token = next_token(me);
            request const script{"EVAL", "return KEYS[1] .. ' ' .. ARGV[1]", 1, me.key + "value", token};
            co_await repeat(me, script, me.key + "value " + token, true);
        }
        co_await count(me);
        co_await count_pair(me);
        ++me.done;
    }
}

task<void> steady_load::crew::repeat(worker& me, request command, std::string expected, bool exactly) {
    command.repeatable().within(options_.patience);
    try {
        auto const answer = co_await client_.async_execute<std::optional<std::string>>(command);
        bool const right = exactly ? answer == expected : !answer || answer->starts_with(expected);
        if (!right) note_wrong(me.key + ": '" + answer.value_or("nothing") + "' instead of '" + expected + "'");
        note_answer();
    } catch (error const& problem) {
        note_failed(me.key + ": " + problem.what());
    }
}

// Where acknowledged writes can be lost, an older value of one's own is right too; another's never is.
task<void> steady_load::crew::read_back(worker& me, std::string token) {
    auto const expected = options_.durable ? token : me.key + " ";
    request const command{"GET", me.key + "value"};
    co_await repeat(me, command, expected, options_.durable);
}

task<void> steady_load::crew::count(worker& me) {
    request command{"INCR", me.key + "count"};
    command.within(options_.patience);
    try {
        co_await client_.async_execute<std::int64_t>(command);
        ++me.counted;
        note_answer();
    } catch (error const& problem) {
        if (note_once(problem.reason())) ++me.doubtful;
    }
}

task<void> steady_load::crew::count_pair(worker& me) {
    transaction both;
    both.add("INCR", me.key + "left").add("INCR", me.key + "right").within(options_.patience);
    try {
        auto const answers = co_await client_.async_execute(std::move(both));
        ++me.paired;
        note_answer();
        if (!answers || answers->size() != 2 || (*answers)[0].as<std::int64_t>() != (*answers)[1].as<std::int64_t>()) {
            note_wrong(me.key + ": the two of a transaction differ");
        }
    } catch (error const& problem) {
        if (note_once(problem.reason())) ++me.doubtful_pairs;
    }
}

bool steady_load::crew::wait_for_fresh_round(std::chrono::milliseconds timeout) {
    std::vector<std::uint64_t> begun;
    for (auto const& one : workers_) begun.push_back(one.begun);
    return eventually(
        [&] {
            for (std::size_t i = 0; i < workers_.size(); ++i) {
                if (workers_[i].done <= begun[i]) return false;
            }
            return true;
        },
        timeout);
}

void steady_load::crew::check(worker const& me, char const* counter, std::size_t least, std::size_t most) {
    request command{"GET", me.key + counter};
    command.repeatable().within(options_.patience);
    auto const value = client_.execute<std::optional<std::size_t>>(command).value_or(0);
    if (value <= most && (value >= least || !options_.durable)) return;
    note_wrong(me.key + counter + " is " + std::to_string(value) + ", not within " + std::to_string(least) + " and " +
               std::to_string(most));
}

void steady_load::crew::check_counters() {
    for (auto const& me : workers_) {
        check(me, "count", me.counted, me.counted + me.doubtful);
        check(me, "left", me.paired, me.paired + me.doubtful_pairs);
        check(me, "right", me.paired, me.paired + me.doubtful_pairs);
    }
}

load_report steady_load::crew::finish() {
    stopping_ = true;
    auto const timeout = options_.patience + std::chrono::seconds{10};
    report_.ended = eventually([this] { return running_ == 0; }, timeout);
    if (!report_.ended) client_.close();  // so that nothing outlives this object; the test has failed
    if (pace_maker_.joinable()) pace_maker_.join();
    report_.answered = answered_;
    if (report_.ended) check_counters();
    return std::exchange(report_, {});
}

steady_load::steady_load(client& through, load_options options) : crew_{std::make_shared<crew>(through, options)} {
    crew_->begin();
}

steady_load::~steady_load() {
    if (crew_) static_cast<void>(finish());
}

bool steady_load::wait_for_fresh_round(std::chrono::milliseconds timeout) {
    return crew_->wait_for_fresh_round(timeout);
}

load_report steady_load::finish() { return std::exchange(crew_, nullptr)->finish(); }

}  // namespace lockstep::test
