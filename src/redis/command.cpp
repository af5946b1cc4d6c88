#include "redis/command.hpp"

#include "resp/encoder.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

namespace lockstep::redis {
namespace {

/// An operation whose one reply is the result of the coroutine it lives in. The result goes into that coroutine's promise at once, so
/// that it is not kept twice. Its bytes are somebody else's until the coroutine is made, then they lie behind its frame
/// (promise_base::operator new). All that because tens of thousands of these may be parked.
class reply_operation : public operation {
public:
    using promise = detail::task_promise<reply>;

    std::size_t tail_size() const noexcept { return size_; }
    void put_tail(char* to) noexcept {
        if (size_ != 0) std::memcpy(to, data_, size_);
        data_ = to;
    }

    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<promise> awaiting) {
        awaiting_ = awaiting;
        if (begin(due(), awaiting.promise().cancellation())) return true;
        awaiting.promise().set_error(make_error(errc::cancelled, "the request was cancelled before it was sent"));
        return false;
    }
    detail::result_is_set await_resume() const noexcept { return {}; }

protected:
    reply_operation(std::shared_ptr<router> way, std::string_view bytes, command_terms const& terms) noexcept
        : data_(bytes.data()), size_(static_cast<std::uint32_t>(bytes.size())), errors_are_replies_(terms.errors_are_replies) {
        use_way(std::move(way));
        preset_due(terms.deadline);
        slot = terms.slot;
        repeatable = terms.repeatable;
        yields = terms.yields;
    }
    reply_operation(reply_operation&& idle) noexcept
        : operation(std::move(idle)), data_(idle.data_), size_(idle.size_), errors_are_replies_(idle.errors_are_replies_) {
        preset_due(idle.due());
    }
    ~reply_operation() = default;

    std::string_view bytes() const noexcept { return {data_, size_}; }

private:
    void complete(reply_view answer) noexcept override {
        if (answer.is_error() && !errors_are_replies_) return finish_with(make_error(errc::server, std::string{answer.text()}));
        awaiting_.promise().return_value(reply{answer});
        awaiting_.resume();
    }
    void fail(errc reason, std::string_view why) noexcept override { finish_with(make_error(reason, std::string{why})); }
    void finish_with(std::exception_ptr error) noexcept {
        awaiting_.promise().set_error(std::move(error));
        awaiting_.resume();
    }

    std::coroutine_handle<promise> awaiting_;
    char const* data_;
    std::uint32_t size_;
    bool errors_are_replies_;
};

class plain_command final : public reply_operation {
public:
    plain_command(std::shared_ptr<router> way, std::string_view bytes, command_terms const& terms) noexcept
        : reply_operation(std::move(way), bytes, terms) {}
    plain_command(plain_command&&) noexcept = default;
    ~plain_command() { withdraw(); }
    void encode(resp::output& out) override { out.append(bytes()); }
};

class script_command final : public reply_operation {
public:
    /// `bytes` are all arguments after the script.
    script_command(std::shared_ptr<router> way, scripts::script const& script, std::size_t arguments, std::string_view bytes,
                   command_terms const& terms) noexcept
        : reply_operation(std::move(way), bytes, terms), script_(&script), arguments_(static_cast<std::uint32_t>(arguments)) {}
    script_command(script_command&&) noexcept = default;
    ~script_command() { withdraw(); }

    void encode(resp::output& out) override {
        resp::command_header(out, 2 + arguments_);
        auto const name = script_->read_only ? (whole_ ? "EVAL_RO" : "EVALSHA_RO") : (whole_ ? "EVAL" : "EVALSHA");
        resp::bulk(out, std::string_view{name});
        resp::bulk(out, whole_ ? script_->text : script_->sha1);
        out.append(bytes());
    }
    bool use_full_script() noexcept override { return !std::exchange(whole_, true); }

private:
    scripts::script const* script_;
    std::uint32_t arguments_;
    bool whole_ = false;
};

template <class Command>
task<reply> run_in_frame(Command command) {
    co_return co_await command;
}

/// Where requests are encoded before their frame is made. Empty between calls; its memory is reused.
resp::output& scratch() {
    // By a pointer, which nothing destroys: objects that go after this thread's own may issue requests too, as the program ends.
    thread_local resp::output* bytes = nullptr;
    struct owner {
        ~owner() { delete std::exchange(bytes, nullptr); }
    };
    thread_local owner const frees_it;
    if (bytes == nullptr) bytes = new resp::output;
    if (bytes->capacity() > 1024 * 1024) bytes->release();
    bytes->clear();
    return *bytes;
}

/// A request keeps its length in 32 bits.
std::string_view checked(std::string_view bytes) {
    if (bytes.size() > std::numeric_limits<std::uint32_t>::max()) throw invalid_argument_error("a request must be smaller than 4 GiB");
    return bytes;
}

/// Gathers the replies of MULTI, each QUEUED, and EXEC.
class transaction_operation final : public operation {
public:
    transaction_operation(std::shared_ptr<router> way, transaction const& commands, command_terms const& terms)
        : commands_(commands), deadline_(terms.deadline) {
        use_way(std::move(way));
        slot = terms.slot;
        repeatable = terms.repeatable;
        replies = static_cast<std::uint16_t>(commands.size() + 2);
    }
    ~transaction_operation() { withdraw(); }

    bool await_ready() const noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> awaiting) {
        awaiting_ = awaiting;
        if (begin(deadline_, detail::cancellation_of(awaiting))) return true;
        error_ = make_error(errc::cancelled, "the transaction was cancelled before it was sent");
        return false;
    }
    std::optional<std::vector<reply>> await_resume() {
        if (error_) std::rethrow_exception(error_);
        if (ran_alone_) {
            throw indeterminate_error(fmt::format("the server refused MULTI ({}), so the commands ran one by one and not as a transaction", refusal_));
        }
        if (last_.is_error()) throw server_error(refusal_.empty() ? std::string{last_.text()} : refusal_);
        if (last_.is_null()) return std::nullopt;
        std::vector<reply> answers;
        for (auto const one : last_) answers.emplace_back(one);
        return answers;
    }

private:
    void encode(resp::output& out) override {
        resp::append_command(out, "MULTI");
        for (auto const& command : commands_.commands()) out.append(command.encoded());
        resp::append_command(out, "EXEC");
    }
    void restart() noexcept override {
        seen_ = 0;
        began_ = ran_alone_ = false;
        refusal_.clear();
    }
    // A command refused while it was queued means that EXEC runs nothing: its reason is the transaction's.
    std::string_view refusal(reply_view last) const noexcept override {
        if (!last.is_error() || ran_alone_) return {};
        return refusal_.empty() ? last.text() : std::string_view{refusal_};
    }
    void complete(reply_view answer) noexcept override {
        if (++seen_ == 1) began_ = !answer.is_error();
        if (seen_ < replies) {
            if (!began_ && !answer.is_error()) ran_alone_ = true;
            if (answer.is_error() && refusal_.empty()) refusal_ = answer.text();
            return;
        }
        last_ = reply{answer};
        awaiting_.resume();
    }
    void fail(errc reason, std::string_view why) noexcept override {
        error_ = make_error(reason, std::string{why});
        awaiting_.resume();
    }

    transaction const& commands_;
    reactor::clock::time_point deadline_;
    std::coroutine_handle<> awaiting_;
    std::size_t seen_ = 0;
    bool began_ = false;      // MULTI was taken
    bool ran_alone_ = false;  // it was not, and a command behind it ran
    std::string refusal_;
    reply last_;
    std::exception_ptr error_;
};

task<std::optional<std::vector<reply>>> run_transaction_in_frame(std::shared_ptr<router> way, transaction commands, command_terms terms) {
    transaction_operation operation{std::move(way), commands, terms};
    co_return co_await operation;
}

}  // namespace

task<reply> run_encoded(std::shared_ptr<router> way, std::string_view bytes, command_terms terms) {
    return run_in_frame(plain_command{std::move(way), checked(bytes), terms});
}

task<reply> run_command(std::shared_ptr<router> way, std::span<detail::argument const> words, command_terms terms) {
    auto& bytes = scratch();
    resp::append_list(bytes, words, &detail::argument::view);
    return run_encoded(std::move(way), bytes.view(), terms);
}

task<std::optional<std::vector<reply>>> run_transaction(std::shared_ptr<router> way, transaction commands, command_terms terms) {
    return run_transaction_in_frame(std::move(way), std::move(commands), terms);
}

task<reply> run_script(std::shared_ptr<router> way, scripts::script const& script, std::span<std::string_view const> keys,
                       std::span<detail::argument const> arguments, command_terms terms) {
    auto& bytes = scratch();
    resp::bulk(bytes, keys.size());
    for (auto const key : keys) resp::bulk(bytes, key);
    for (auto const& one : arguments) resp::bulk(bytes, one.view());
    return run_in_frame(script_command{std::move(way), script, 1 + keys.size() + arguments.size(), checked(bytes.view()), terms});
}

}  // namespace lockstep::redis
