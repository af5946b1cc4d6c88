#include "chaos_chronicler.hpp"

#include "chaos_names.hpp"

#include <lockstep/error.hpp>

#include <chrono>
#include <stdexcept>
#include <thread>

namespace lockstep::chaos {

using namespace std::chrono_literals;

chronicler::chronicler(actor& self, client& by) : self_{self} {
    for (std::uint64_t i = 0; i < stream_names; ++i) streams_.emplace_back(by, numbered("stream", i));
}

void chronicler::add() try {
    auto const which = self_.below(streams_.size());
    self_.turn_to(numbered("stream", which));
    auto const value = self_.about().who + "#" + std::to_string(++made_);
    self_.report("add", value);
    auto const id = streams_[which].add_value(value);
    auto const dash = id.find('-');
    self_.about().fence = std::stoull(id.substr(0, dash));
    self_.about().n = std::stoll(id.substr(dash + 1));
    self_.report("added", value);
} catch (indeterminate_error const&) {
    self_.report("unknown");
} catch (error const& problem) {
    self_.report("failed", problem.code().message() + ": " + problem.what());
}

consumer read_stream(actor& self, client& by, std::string const& name) {
    self.turn_to(name);
    auto const handle = [&self](delivery const& what) {
        auto const value = what.as<std::string>();
        self.about().n = what.deliveries;
        self.report("processed", value);
        if (self.one_in(20)) std::this_thread::sleep_for(self.up_to(20));
        if (self.one_in(400)) std::this_thread::sleep_for(self.up_to(1'500));  // longer than others wait who think it is dead
        if (self.one_in(25)) throw std::runtime_error{"it does not want to"};
        self.report("handled", value);
    };
    return {by, name, handle,
            {.group = stream_group, .batch = 20, .idle_limit = 1s, .max_deliveries = 0, .retry_min = 20ms, .retry_max = 200ms}};
}

}  // namespace lockstep::chaos
