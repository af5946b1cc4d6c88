// lockstep publish BUS CHANNEL MESSAGE, lockstep subscribe BUS CHANNEL: the event bus.

#include "cli/commands.hpp"
#include "cli/interruption.hpp"
#include "cli/letterbox.hpp"
#include "cli/options.hpp"

#include <lockstep/event_bus.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>

#include <memory>
#include <utility>

namespace lockstep::cli {
namespace {

struct bus_words {
    std::string bus, channel, message;
    bool pattern = false, patterns = false;
    std::size_t most = 0;
};

void declare(CLI::App& command, bus_words& what) {
    add_name(command, what.bus, "the bus; programs use it with lockstep::event_bus");
    command.add_option("CHANNEL", what.channel, "the channel")->required()->type_name("");
    command.add_flag("--patterns", what.patterns, "in a Cluster: of a bus that is made for patterns, which all who use it must say");
}

struct heard {
    std::string channel, text;
    bool gap = false;
};

exit_code listen(context const& all, bus_words const& what) {
    return interruptible([&](std::stop_token token) {
        letterbox<heard> box;
        auto by = all.connect();
        event_bus bus{by, what.bus, {.patterns = what.patterns}};
        auto const put = [&box](std::string const& text, std::string_view channel) { box.put({std::string{channel}, text}); };
        bus_subscribe_options how;
        how.on_gap = [&box] { box.put({.gap = true}); };
        auto const listening = what.pattern ? bus.subscribe_pattern<std::string>(what.channel, put, std::move(how))
                                            : bus.subscribe<std::string>(what.channel, put, std::move(how));
        for (std::size_t seen = 0; what.most == 0 || seen < what.most;) {
            auto const one = box.next(token);
            if (!one) throw cancelled_error("told to end");
            if (one->gap) {
                all.note("the connection was lost: messages may have been missed", boost::json::object{{"gap", true}});
                continue;
            }
            ++seen;
            if (all.json) {
                all.print_json(boost::json::object{{"channel", one->channel}, {"message", one->text}});
            } else {
                all.print_stored(what.pattern ? fmt::format("{} {}", one->channel, one->text) : one->text);
            }
        }
        return exit_code::ok;
    });
}

}  // namespace

void add_publish(CLI::App& command, context& all) {
    command.description("Sends a message to all who listen to a channel of a bus now. Returns 1 if nobody does.");
    auto const what = std::make_shared<bus_words>();
    declare(command, *what);
    command.add_option("MESSAGE", what->message, "the message")->required()->type_name("");
    command.callback([what, &all] {
        all.action = [what, &all] {
            auto by = all.connect();
            auto const heard_by = event_bus{by, what->bus, {.patterns = what->patterns}}.publish(what->channel, what->message);
            if (all.json) all.print_json(boost::json::object{{"bus", what->bus}, {"channel", what->channel}, {"listeners", heard_by}});
            return heard_by > 0 ? exit_code::ok : exit_code::no;
        };
    });
}

void add_subscribe(CLI::App& command, context& all) {
    command.description("Prints messages of a channel of a bus as they come, until a signal ends it.");
    auto const what = std::make_shared<bus_words>();
    declare(command, *what);
    command.add_flag("--pattern", what->pattern, "CHANNEL is a pattern, with * and ?; what is printed begins with the channel");
    command.add_option("--most", what->most, "end after so many")->type_name("N")->check(number_within(1, 1'000'000'000));
    command.callback([what, &all] { all.action = [what, &all] { return listen(all, *what); }; });
}

}  // namespace lockstep::cli
