#include "election/observation.hpp"
#include "observe/entries.hpp"

#include <lockstep/monitor.hpp>

#include <string>
#include <utility>

// What an election's own stream has (include/election_state.lua): who led when.

namespace lockstep {
namespace {

using observe::reader;

task<std::vector<leader_change>> read_changes(reader from, std::string key, std::size_t most) {
    std::vector<leader_change> all;
    if (most == 0) co_return all;
    auto const add = [&](std::string_view id, reply_view fields) {
        all.push_back(detail::read_change(id, fields));
        return all.size() < most;
    };
    auto reading = observe::for_each_entry(from, key, add);
    co_await std::move(reading);
    co_return all;
}

}  // namespace

task<std::vector<leader_change>> monitor::async_changes(std::string_view name, std::size_t most) {
    auto const& core = detail::core_access::of(*client_);
    core->require_same_process();
    reader from{core, notes_->begin()};
    auto key = from.key(name, "changes");
    return read_changes(std::move(from), std::move(key), most);
}
std::vector<leader_change> monitor::changes(std::string_view name, std::size_t most) { return sync_wait(async_changes(name, most)); }

}  // namespace lockstep
