#include "observe/entries.hpp"

#include "resp/cursor.hpp"
#include "scripts/all.hpp"

#include <fmt/format.h>

namespace lockstep::observe {
namespace {

constexpr std::size_t entries_of_a_page = 500;
constexpr std::size_t bytes_of_a_page = std::size_t{256} << 10;
constexpr std::size_t largest_entry = std::size_t{64} << 10;
constexpr std::size_t most_entries = 1'000'000;

}  // namespace

task<void> for_each_entry(reader from, std::string key, std::function<bool(std::string_view id, reply_view fields)> handler) {
    std::vector<std::string> words{"XREVRANGE", "+", "-", std::to_string(entries_of_a_page), std::to_string(bytes_of_a_page), std::to_string(largest_entry)};
    walk_limit limit{from, key, entries_of_a_page, most_entries};
    try {
        for (bool is_more = true; is_more;) {
            auto asking = from.script(scripts::stream_range, {key}, words);
            auto const answer = co_await std::move(asking);
            resp::cursor rest{answer};
            is_more = rest.next().integer() == 1 && rest.left() != 0;
            while (rest.left() != 0) {
                auto const entry = rest.next();
                auto const id = entry[0].text();
                words[1] = fmt::format("({}", id);
                if (!entry[1].is_aggregate()) {
                    from.note(key, fmt::format("the entry {} is not shown: it has {} bytes", id, entry[1].integer()));
                } else if (!handler(id, entry[1])) {
                    co_return;
                }
            }
            if (is_more && !limit.goes_on()) co_return;
        }
    } catch (server_error const& problem) {
        from.note_or_throw(key, problem);
    }
}

}  // namespace lockstep::observe
