#include "cli/errand.hpp"

#include "cli/standard_error.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

namespace lockstep::cli {
namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t most_output = 16 * 1024 * 1024;
constexpr std::size_t longest_complaint = 4096;
constexpr std::string_view progress_mark = "progress: ";

class descriptor {
public:
    explicit descriptor(int number = -1) noexcept : number_(number) {}
    descriptor(descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    descriptor& operator=(descriptor&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    ~descriptor() { close(); }
    int get() const noexcept { return number_; }
    bool is_open() const noexcept { return number_ >= 0; }
    void close() noexcept {
        if (is_open()) ::close(std::exchange(number_, -1));
    }

private:
    int number_;
};

struct pipe_ends {
    descriptor read, write;
};

descriptor checked(int number, char const* what) {
    if (number < 0) throw std::system_error{errno, std::generic_category(), what};
    return descriptor{number};
}

pipe_ends make_pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::system_error{errno, std::generic_category(), "pipe"};
    return {descriptor{ends[0]}, descriptor{ends[1]}};
}

void do_not_wait(descriptor const& at) { ::fcntl(at.get(), F_SETFL, ::fcntl(at.get(), F_GETFL) | O_NONBLOCK); }

/// What can be had now: all that a pipe holds, but not for ever from one who never ends. False: there will be no more.
template <class F>
bool drain(descriptor const& from, F take) {
    std::array<char, 16384> bytes;
    for (int i = 0; i != 64; ++i) {
        auto const got = ::read(from.get(), bytes.data(), bytes.size());
        if (got > 0) take(std::string_view{bytes.data(), static_cast<std::size_t>(got)});
        else if (got == 0 || errno != EINTR) return got < 0 && errno == EAGAIN;
    }
    return true;
}

/// What it says, line by line.
class listener {
public:
    void hear(std::string_view bytes) {
        while (!bytes.empty()) {
            auto const end = bytes.find('\n');
            bool const is_whole = end != std::string_view::npos;
            auto const part = bytes.substr(0, is_whole ? end + 1 : end);
            bytes.remove_prefix(part.size());
            if (line_.size() + output_.size() < most_output) line_ += part;
            else is_cut_ = true;
            if (is_whole) close_line();
        }
    }
    void close_line() {
        if (line_.starts_with(progress_mark)) {
            while (!line_.empty() && (line_.back() == '\n' || line_.back() == '\r')) line_.pop_back();
            progress_ = line_.substr(std::min(progress_mark.size(), line_.size()));
        } else {
            output_ += line_;
        }
        line_.clear();
    }
    std::optional<std::string> progress() { return std::exchange(progress_, std::nullopt); }
    bool is_cut() const noexcept { return is_cut_; }
    std::string result() {
        close_line();
        if (output_.ends_with('\n')) output_.pop_back();
        return std::move(output_);
    }

private:
    std::string line_;
    std::string output_;
    std::optional<std::string> progress_;
    bool is_cut_ = false;
};

/// The last line that says something.
class complaints {
public:
    void hear(std::string_view bytes) {
        say_to_standard_error(bytes);  // it goes on to ours, if somebody takes it: a lease is not to end unseen because nobody does
        for (char const c : bytes) {
            if (c == '\n') close_line();
            else if (line_.size() < longest_complaint) line_ += c;
        }
    }
    std::string last() {
        close_line();
        return std::move(last_);
    }

private:
    void close_line() {
        if (line_.find_first_not_of(" \t\r") != std::string::npos) last_ = line_;
        line_.clear();
    }
    std::string line_;
    std::string last_;
};

class errand_run {
public:
    explicit errand_run(errand what) : what_(std::move(what)) {}

    errand_end run() {
        block_broken_pipes();
        auto to = make_pipe();
        auto out = make_pipe();
        auto err = make_pipe();
        bell_ = checked(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd");
        what_.what.streams = {to.read.get(), out.write.get(), err.write.get()};
        command_groups::member command{*what_.among, what_.what, what_.mask, what_.may_go_on};
        command_ = &command;
        in_ = std::move(to.write);
        out_ = std::move(out.read);
        err_ = std::move(err.read);
        to.read.close();  // ours of those ends: else there is no end of file
        out.write.close();
        err.write.close();
        for (auto const* const one : {&in_, &out_, &err_}) do_not_wait(*one);
        ended_ = descriptor{static_cast<int>(::syscall(SYS_pidfd_open, command.group(), 0))};  // the header of glibc 2.36 is not for C++
        std::stop_callback const stops{what_.stop, [this] { ring(); }};
        while (!command.has_ended()) step();
        collect();
        if (!told_to_stop_) command.signal(SIGKILL);  // what it left behind: nobody watches over it any more
        int const status = command.reap();
        if (told_to_stop_) wait_for_the_others();
        command.over();
        return {status, said_.result(), said_.is_cut(), complained_.last()};
    }

private:
    static void block_broken_pipes() {
        sigset_t pipe;
        sigemptyset(&pipe);
        sigaddset(&pipe, SIGPIPE);
        ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
    }
    void ring() const noexcept {
        std::uint64_t const one = 1;
        [[maybe_unused]] auto const written = ::write(bell_.get(), &one, sizeof one);
    }

    /// A shell ends at once, but the program that it runs may have something to put in order.
    void wait_for_the_others() {
        while (command_->has_others()) {
            if (!kill_at_ || clock::now() >= *kill_at_) return command_->signal(SIGKILL);
            ::poll(nullptr, 0, 10);
            collect();
        }
    }

    void step() {
        std::array<pollfd, 5> ready{{{in_.get(), POLLOUT, 0}, {out_.get(), POLLIN, 0}, {err_.get(), POLLIN, 0}, {ended_.get(), POLLIN, 0},
                                     {told_to_stop_ ? -1 : bell_.get(), POLLIN, 0}}};
        int time = ended_.is_open() ? -1 : 20;  // a kernel without such descriptors
        if (kill_at_) time = static_cast<int>(std::clamp<std::int64_t>(std::chrono::ceil<milliseconds>(*kill_at_ - clock::now()).count(), 0, 3'600'000));
        ::poll(ready.data(), ready.size(), time);
        if (ready[0].revents != 0) feed();
        collect();
        if (what_.stop.stop_requested() && !told_to_stop_) {
            told_to_stop_ = true;
            command_->signal(SIGTERM);
            command_->signal(SIGCONT);
            kill_at_ = clock::now() + what_.grace;
        }
        if (kill_at_ && clock::now() >= *kill_at_) {
            command_->signal(SIGKILL);
            kill_at_.reset();
        }
    }

    void feed() {
        while (fed_ < what_.input.size()) {
            auto const wrote = ::write(in_.get(), what_.input.data() + fed_, what_.input.size() - fed_);
            if (wrote > 0) fed_ += static_cast<std::size_t>(wrote);
            else if (wrote < 0 && errno == EINTR) continue;
            else if (wrote < 0 && errno == EAGAIN) return;
            else break;  // it does not read it
        }
        in_.close();
    }

    void collect() {
        if (out_.is_open() && !drain(out_, [this](std::string_view bytes) { said_.hear(bytes); })) out_.close();
        if (err_.is_open() && !drain(err_, [this](std::string_view bytes) { complained_.hear(bytes); })) err_.close();
        if (auto text = said_.progress(); text && what_.on_progress) what_.on_progress(std::move(*text));
    }

    errand what_;
    command_groups::member* command_ = nullptr;
    descriptor in_, out_, err_, ended_, bell_;
    listener said_;
    complaints complained_;
    std::size_t fed_ = 0;
    bool told_to_stop_ = false;
    std::optional<clock::time_point> kill_at_;
};

}  // namespace

errand_end run_errand(errand what) { return errand_run{std::move(what)}.run(); }

}  // namespace lockstep::cli
