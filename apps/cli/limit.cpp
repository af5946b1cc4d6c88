// lockstep limit NAME KEY --limit N --per TIME: so much per time.

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
    rate_limit_options rule{};
    std::optional<std::chrono::milliseconds> per{};
    std::int64_t cost = 1;
    std::optional<std::chrono::milliseconds> wait{};
};

exit_code ask(context const& all, limit_words const& what) {
    return interruptible([&](std::stop_token token) {
        auto by = all.connect();
        rate_limiter limiter{by, what.name, what.rule};
        auto const said = what.wait ? limiter.try_acquire_for(what.key, *what.wait, what.cost, token) : limiter.try_acquire(what.key, what.cost, token);
        using std::chrono::ceil;
        using std::chrono::milliseconds;
        if (all.json) {
            all.print_json(boost::json::object{{"name", what.name}, {"key", what.key}, {"allowed", said.allowed}, {"limit", said.limit}, {"remaining", said.remaining},
                                               {"retry_after_ms", ceil<milliseconds>(said.retry_after).count()}, {"reset_ms", ceil<milliseconds>(said.reset).count()}});
        } else if (!said.allowed) {
            all.note(fmt::format("over the limit; again in {}", show(said.retry_after)));
        }
        return said.allowed ? exit_code::ok : exit_code::no;
    });
}

}  // namespace

void add_limit(CLI::App& command, context& all) {
    command.description("Asks whether one more is within a limit that all programs share, and counts it if so. Returns 1 if not.");
    auto const what = std::make_shared<limit_words>();
    add_name(command, what->name, "the limiter; all who use it must say the same --limit, --per and --algorithm");
    command.add_option("KEY", what->key, "whose limit: a user, an address")->required()->type_name("");
    command.add_option("--limit", what->rule.limit, "so much")->required()->type_name("N")->check(CLI::PositiveNumber);
    add_duration(command, "--per", what->per, "in this time [1s]");
    std::map<std::string, rate_algorithm> const words{
        {"log", rate_algorithm::sliding_log}, {"window", rate_algorithm::sliding_window}, {"bucket", rate_algorithm::token_bucket}};
    command.add_option("--algorithm", what->rule.algorithm, "log (exact), window or bucket [log]")->type_name("WORD")->transform(CLI::CheckedTransformer(words));
    command.add_option("--burst", what->rule.burst, "of a bucket: so much at once [--limit]")->type_name("N")->check(CLI::PositiveNumber);
    command.add_option("--cost", what->cost, "this one counts so much [1]")->type_name("N")->check(CLI::PositiveNumber);
    add_duration(command, "-w,--wait", what->wait, "wait for its turn, so long at most");
    command.callback([what, &all] {
        if (what->per) what->rule.per = *what->per;
        all.action = [what, &all] { return ask(all, *what); };
    });
}

}  // namespace lockstep::cli
