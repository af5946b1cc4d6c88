// lockstep limit NAME KEY --limit N --per TIME: so much per time; asked for, looked at, or forgotten.

#include "cli/commands.hpp"
#include "cli/interruption.hpp"
#include "cli/options.hpp"

#include <lockstep/rate_limiter.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>

#include <memory>

namespace lockstep::cli {
namespace {

struct limit_words {
    std::string name, key;
    rate_limit_options rule{.command_timeout = std::chrono::seconds{10}};  // a person may wait for a server that is slow
    std::optional<std::chrono::milliseconds> per{};
    std::int64_t cost = 1;
    std::optional<std::chrono::milliseconds> wait{};
    bool peek = false, reset = false;
};

rate_decision decide(rate_limiter& by, limit_words const& what, std::stop_token const& token) {
    if (what.peek) return by.peek(what.key, what.cost, token);
    return what.wait ? by.try_acquire_for(what.key, *what.wait, what.cost, token) : by.try_acquire(what.key, what.cost, token);
}

exit_code ask(context const& all, limit_words const& what) {
    return interruptible([&](std::stop_token token) {
        auto by = all.connect();
        rate_limiter limiter{by, what.name, what.rule};
        if (what.reset) {
            limiter.reset(what.key, token);
            if (all.json) all.print_json(boost::json::object{{"name", what.name}, {"key", what.key}, {"reset", true}});
            return exit_code::ok;
        }
        auto const said = decide(limiter, what, token);
        using std::chrono::ceil;
        using std::chrono::milliseconds;
        if (all.json) {
            all.print_json(boost::json::object{{"name", what.name}, {"key", what.key}, {"allowed", said.allowed}, {"limit", said.limit}, {"remaining", said.remaining},
                                               {"retry_after_ms", ceil<milliseconds>(said.retry_after).count()}, {"reset_ms", ceil<milliseconds>(said.reset).count()}});
        } else {
            if (what.peek) all.print(fmt::format("{} of {} left\n", said.remaining, said.limit));
            if (!said.allowed) all.note(fmt::format("over the limit; again in {}", show(said.retry_after)));
        }
        return said.allowed ? exit_code::ok : exit_code::no;
    });
}

}  // namespace

void add_limit(CLI::App& command, context& all) {
    command.description("Asks whether one more is within a limit that all programs share, and counts it if so. Returns 1 if not. --peek only looks, --reset forgets.");
    auto const what = std::make_shared<limit_words>();
    add_name(command, what->name, "the limiter; all who use it must say the same --limit, --per, --algorithm and --together");
    command.add_option("KEY", what->key, "whose limit: a user, an address")->required()->type_name("");
    command.add_option("--limit", what->rule.limit, "so much")->required()->type_name("N")->check(number_within(1, 1'000'000'000));
    add_duration(command, "--per", what->per, "in this time [1s]");
    add_word(command, "--algorithm", what->rule.algorithm,
             {{"log", rate_algorithm::sliding_log}, {"window", rate_algorithm::sliding_window}, {"bucket", rate_algorithm::token_bucket}},
             "log (exact), window or bucket [log]");
    command.add_option("--burst", what->rule.burst, "of a bucket: so much at once [--limit]")->type_name("N")->check(number_within(1, 1'000'000'000));
    command.add_flag("--together", what->rule.together, "its keys are kept together, if the programs that use it say so");
    auto* const cost = command.add_option("--cost", what->cost, "this one counts so much [1]")->type_name("N")->check(number_within(1, 1'000'000'000));
    auto* const wait = add_duration(command, "-w,--wait", what->wait, "wait for its turn, so long at most");
    auto* const peek = command.add_flag("--peek", what->peek, "count nothing; print how much is left")->excludes(wait);
    command.add_flag("--reset", what->reset, "count nothing; forget what was counted for KEY")->excludes(wait, peek, cost);
    command.callback([what, &all] {
        if (what->per) what->rule.per = *what->per;
        all.action = [what, &all] { return ask(all, *what); };
    });
}

}  // namespace lockstep::cli
