// lockstep top: what is held and who waits, live.

#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "cli/signals.hpp"
#include "cli/view.hpp"
#include "common/json.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <termios.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>

namespace lockstep::cli {
namespace {

struct top_options {
    std::string pattern;
    order by = order::queue;
    bool all = false, scan = false;
    std::optional<std::chrono::milliseconds> every{};
};

/// The terminal as a page: no scrolling, no echo, no cursor. Given back as it was.
class page {
public:
    page() {
        ::tcgetattr(STDIN_FILENO, &before_);
        on();
    }
    ~page() { off(); }
    page(page const&) = delete;
    page& operator=(page const&) = delete;

    void on() {
        auto raw = before_;
        raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
        ::tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
        say("\033[?1049h\033[?25l");
    }
    void off() {
        say("\033[?25h\033[?1049l");
        ::tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
    }
    static void say(std::string_view text) {
        [[maybe_unused]] auto const written = ::write(STDOUT_FILENO, text.data(), text.size());
    }

private:
    termios before_{};
};

std::string heading(snapshot const& now, client const& by) {
    std::size_t stale = 0;
    for (auto const& one : now.holds) stale += one.stale ? 1 : 0;
    std::size_t waiting = 0;
    for (auto const& one : now.objects) waiting += one.queue;
    if (!now.trouble.empty()) return fmt::format("lockstep  {}  as it was: {}", show_time(now.at).substr(0, 8), printable(now.trouble));
    return fmt::format("lockstep  {}  {}  {} objects  {} holds{}  {} waiting  {} clients{}", show_time(now.at).substr(0, 8), printable(by.description()), now.objects.size(),
                       now.holds.size(), stale == 0 ? "" : fmt::format(" ({} of the dead)", stale), waiting, now.clients.size(),
                       now.notes.empty() ? "" : fmt::format("  not shown: {}", printable(now.notes.front())));
}

/// Lines, at most so many, each with its end.
std::string frame(snapshot const& now, client const& by, top_options const& how, context const& all, std::size_t rows, std::size_t width) {
    auto const lines = cut_to(heading(now, by), width) + "\n\n" + table_of(now, how.by, how.all).text(all.coloured(), width);
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < rows; ++i) {
        auto const end = lines.find('\n', at);
        if (end == std::string::npos) return lines;
        at = end + 1;
    }
    auto const left = std::count(lines.begin() + static_cast<std::ptrdiff_t>(at), lines.end(), '\n');
    return left == 0 ? lines : lines.substr(0, at) + fmt::format("... and {} more", left);
}

/// The newest snapshot, from the I/O thread to this one.
struct mailbox {
    ~mailbox() { ::close(bell); }
    void put(snapshot const& news) {
        {
            std::lock_guard const guard{mutex};
            newest = news;
        }
        std::uint64_t const one = 1;
        [[maybe_unused]] auto const written = ::write(bell, &one, sizeof one);
    }
    snapshot get() {
        std::uint64_t rings = 0;
        [[maybe_unused]] auto const got = ::read(bell, &rings, sizeof rings);
        std::lock_guard const guard{mutex};
        return newest;
    }
    int bell = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    std::mutex mutex;
    snapshot newest;
};

class live {
public:
    live(context const& all, top_options& how, signals& from) : all_(all), how_(how), signals_(from), by_(all.connect()) {}

    exit_code run() {
        auto const box = std::make_shared<mailbox>();
        watch_options options{};
        options.what.pattern = how_.pattern;
        options.what.waiters = 0;
        options.what.scan = how_.scan;
        options.at_most_every = how_.every.value_or(options.at_most_every);
        options.at_least_every = std::max(options.at_least_every, options.at_most_every);
        monitor from{by_};
        box->put(from.snapshot(options.what));  // and if there is no server, the error comes before the page
        page shown;
        auto const watching = from.watch([box](snapshot const& now) { box->put(now); }, options);
        while (!over_) {
            std::array<pollfd, 3> ready{{{box->bell, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}, {signals_.descriptor(), POLLIN, 0}}};
            ::poll(ready.data(), ready.size(), -1);
            if ((ready[1].revents & (POLLIN | POLLHUP)) != 0) key();
            while (auto const number = signals_.next()) obey(*number, shown);
            draw(box->get());
        }
        return code_;
    }

private:
    void key() {
        char pressed = 'q';
        if (::read(STDIN_FILENO, &pressed, 1) <= 0) pressed = 'q';
        switch (pressed) {
            case 'q':
            case '\004': over_ = true; break;
            case 'n': how_.by = order::name; break;
            case 'h': how_.by = order::held; break;
            case 'w': how_.by = order::queue; break;
            case 'a': how_.all = !how_.all; break;
            default: break;
        }
    }

    void obey(int number, page& shown) {
        if (number == SIGTSTP) {
            shown.off();
            signals::suffer(SIGTSTP, false);
            shown.on();
        }
        if (number != SIGINT && number != SIGTERM && number != SIGHUP && number != SIGQUIT) return;
        over_ = true;
        if (number != SIGINT) code_ = static_cast<exit_code>(static_cast<int>(exit_code::signalled) + number);
    }

    void draw(snapshot const& now) const {
        auto const size = size_of_terminal();
        auto const lines = frame(now, by_, how_, all_, size.rows - 1, size.columns);
        std::string text = "\033[H";
        for (char const c : lines) text += c == '\n' ? std::string{"\033[K\n"} : std::string(1, c);
        text += "\033[J" + fmt::format("\033[{};1H", size.rows) + paint(cut_to("q quit  n h w sort by name, held, waiting  a all or in use", size.columns), style::dim, all_.coloured()) + "\033[K";
        page::say(text);
    }

    context const& all_;
    top_options& how_;
    signals& signals_;
    client by_;
    bool over_ = false;
    exit_code code_ = exit_code::ok;
};

exit_code show_once(context const& all, top_options const& how) {
    auto by = all.connect();
    snapshot_options wanted{};
    wanted.pattern = how.pattern;
    wanted.scan = how.scan;
    auto const now = monitor{by}.snapshot(wanted);
    if (all.json) {
        all.print_json(apps::as_json(now));
    } else {
        all.print(frame(now, by, how, all, 1'000'000, all.on_terminal() ? all.width() : 1000));
    }
    return exit_code::ok;
}

}  // namespace

void add_top(CLI::App& command, context& all) {
    command.description("What is held and who waits, live. Keys: q quits; n, h and w sort by name, held and waiting; a shows all or what is in use.");
    auto const how = std::make_shared<top_options>();
    auto const once = std::make_shared<bool>(false);
    command.add_option("PATTERN", how->pattern, "only names that fit, with * and ?")->type_name("");
    command.add_option("--sort", how->by, "name, held or queue [queue]")
        ->type_name("BY")
        ->transform(CLI::CheckedTransformer(std::map<std::string, order>{{"name", order::name}, {"held", order::held}, {"queue", order::queue}}));
    command.add_flag("-a,--all", how->all, "also those that nobody uses now");
    command.add_flag("--scan", how->scan, "look through all keys of the server each time; slow where there are many");
    command.add_flag("-1,--once", *once, "one picture, then end; so too where the output is no terminal");
    add_duration(command, "--every", how->every, "at most one picture in this time [250ms]");
    command.callback([=, &all] {
        all.action = [=, &all] {
            if (*once || all.json || !all.on_terminal() || ::isatty(STDIN_FILENO) != 1) return show_once(all, *how);
            signals from;
            return live{all, *how, from}.run();
        };
    });
}

}  // namespace lockstep::cli
