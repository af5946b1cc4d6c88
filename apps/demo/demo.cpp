#include "demo/demo.hpp"

#include "cli/terminal.hpp"
#include "demo/fleet.hpp"
#include "demo/guide.hpp"
#include "demo/screen.hpp"
#include "demo/story.hpp"

#include <lockstep/embedded_server.hpp>

#include <boost/json/object.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <vector>

namespace lockstep::demo {
namespace {

using clock = story::clock;
using std::chrono::milliseconds;
using namespace std::chrono_literals;

std::vector<fleet::member> crew() {
    return {{"ada", "ledger"}, {"bob", "ledger"}, {"cyd", "ledger"}, {"dan", "licences"},  {"eve", "licences"},  {"fay", "licences"},
            {"gus", "round"},  {"hal", "round"},  {"ivy", "round"},  {"jon", "catalogue"}, {"kim", "catalogue"}, {"lea", "catalogue"}};
}

class performance {
public:
    performance(demo_options const& how, stage const& on, std::string const& url, web_page page, page_access const& access)
        : how_(how), on_(on), page_(page), page_lines_(page_lines(page, access)), workers_(how.program, url, crew()),
          random_(how.seed != 0 ? how.seed : std::random_device{}()) {}

    bool run(std::stop_token const& stop) {
        if (!on_.print_json && !on_.on_terminal) {
            for (auto const& line : introduction_) on_.print(line + "\n");
            for (auto const& line : page_lines_) on_.print(line + "\n");
            on_.print(stop_line(how_.length) + "\n\n");
        }
        for (auto const& one : std::vector<fleet::member>{workers_.members()}) begin(one);
        auto next_kill = begun_ + how_.kill_every;
        while (!stop.stop_requested() && clock::now() < begun_ + how_.length) {
            workers_.listen(50ms, hears());
            for (auto const& one : workers_.collect(clock::now() + 1s, hears())) what_.failed(one.name, clock::now());
            if (clock::now() >= next_kill) {
                strike();
                next_kill += how_.kill_every;
            }
            for (auto const& one : std::vector<fleet::member>{workers_.members()}) {
                if (one.pid <= 0 && clock::now() >= one.again) begin(one);
            }
            show();
        }
        workers_.finish(5s, hears());
        auto const length = std::chrono::duration_cast<milliseconds>(clock::now() - begun_);
        show();
        if (on_.print_json) {
            on_.print_json(what_.summary(length));
        } else {
            on_.print(what_.text(length));
            on_.print(next_steps(how_.program_name, page_));
        }
        return what_.violations() == 0;
    }

private:
    fleet::hears hears() {
        return [this](fleet::member const& who, std::string const& line) { what_.said(who.name, line); };
    }

    void begin(fleet::member const& who) {
        workers_.start(who);
        what_.started(who.name, who.role, clock::now());
    }

    /// Mostly one that others wait for, since that is what one wants to see: a lock's owner, one that meets others, one that holds anything.
    void strike() {
        std::vector<fleet::member> running, owning, meeting, holding;
        for (auto const& one : workers_.members()) {
            if (one.pid <= 0) continue;
            running.push_back(one);
            auto const held = what_.held_by(one.name);
            if (!held.empty()) holding.push_back(one);
            if (!held.empty() && one.role == "ledger") owning.push_back(one);
            if (one.role == "round") meeting.push_back(one);
        }
        std::vector<fleet::member> const* from = &owning;
        if (strikes_ % 3 == 1) from = &meeting;
        if (strikes_ % 3 == 2) from = &holding;
        if (from->empty()) from = &running;
        ++strikes_;
        if (from->empty()) return;
        auto const who = (*from)[std::uniform_int_distribution<std::size_t>{0, from->size() - 1}(random_)];
        auto const now = clock::now();
        workers_.kill(who, now + 1500ms, hears());
        what_.killed(who.name, now);
    }

    void show() {
        auto const now = clock::now();
        if (on_.on_terminal && !on_.print_json) {
            if (now - drawn_ < 100ms) return;
            auto const size = cli::size_of_terminal();
            auto const picture = draw(what_, workers_,
                                      {.elapsed = std::chrono::duration_cast<milliseconds>(now - begun_),
                                       .length = how_.length,
                                       .introduction = introduction_,
                                       .page = page_lines_,
                                       .columns = size.columns,
                                       .rows = size.rows,
                                       .coloured = on_.coloured},
                                      now);
            // Over the one before, from its first line on.
            on_.print((drawn_ == clock::time_point{} ? std::string{"\x1b[2J"} : std::string{}) + "\x1b[H" + picture + "\x1b[J");
            drawn_ = now;
            return;
        }
        for (; told_ < what_.told(); ++told_) {
            auto const& one = what_.events()[what_.events().size() - (what_.told() - told_)];
            auto const at = std::chrono::duration_cast<milliseconds>(one.at - begun_);
            if (on_.print_json) {
                on_.print_json({{"what", "event"}, {"at_ms", at.count()}, {"text", one.text}, {"bad", one.is_bad}});
            } else {
                on_.print(fmt::format("{:>6.1f} s  {}\n", static_cast<double>(at.count()) / 1'000, one.text));
            }
        }
    }

    demo_options const& how_;
    stage const& on_;
    web_page page_;
    std::vector<std::string> page_lines_;
    story what_;
    fleet workers_;
    std::vector<std::string> introduction_ = introduction(workers_.members().size(), how_.kill_every);
    std::mt19937 random_;
    clock::time_point begun_ = clock::now();
    clock::time_point drawn_{};
    std::size_t told_ = 0;
    unsigned strikes_ = 0;
};

}  // namespace

bool run_demo(demo_options const& how, stage const& on, std::stop_token stop) {
    embedded_server const server;
    auto const access = on.open_dashboard ? on.open_dashboard(server.url()) : page_access{};
    if (!access.link.empty() && on.print_json) on.print_json({{"what", "dashboard"}, {"url", access.link}, {"token", access.token}});
    auto page = web_page::declined;
    if (on.open_dashboard) page = access.link.empty() ? web_page::not_built : web_page::served;
    return performance{how, on, server.url(), page, access}.run(stop);
}

}  // namespace lockstep::demo
