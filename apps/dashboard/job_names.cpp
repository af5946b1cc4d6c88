#include "dashboard/job_names.hpp"

#include "base/names.hpp"
#include "observe/reader.hpp"

#include <lockstep/error.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace lockstep::dashboard {

struct job_names::search {
    using clock = std::chrono::steady_clock;

    std::mutex mutex;
    std::condition_variable ended;
    bool is_running = false;
    clock::time_point begun{}, next{};
    std::shared_ptr<found_names const> found;
    std::exception_ptr failure;  // of the last one

    static task<void> run(observe::reader from, std::shared_ptr<search> into, std::size_t most);
};

namespace {

using observe::reader;
using clock = std::chrono::steady_clock;
using std::chrono::seconds;

constexpr std::size_t keys_of_a_scan = 1'000;
constexpr seconds between_searches{2};
constexpr seconds after_failure{1};
constexpr seconds listing_limit{2};

// MATCH takes a pattern, and a prefix may have characters that mean something there.
std::string as_pattern(std::string_view text) {
    std::string out;
    for (char const one : text) {
        if (std::string_view{"*?[]\\"}.find(one) != std::string_view::npos) out += '\\';
        out += one;
    }
    return out;
}

// The name of the jobs whose key this is, of their types or of their schedules.
std::optional<std::string> name_in(std::string_view key, std::string_view prefix) {
    auto const end = key.rfind("}:jobs:");
    if (end == std::string_view::npos || end < prefix.size() + 2) return std::nullopt;
    auto const word = key.substr(end + 7);
    if (word != "types" && word != "crons") return std::nullopt;
    auto name = base::decode_name(key.substr(prefix.size() + 2, end - prefix.size() - 2));
    if (!name || name->empty() || name->size() > base::max_name_bytes) return std::nullopt;
    return name;
}

task<std::vector<std::string>> scan_node(reader from, std::int16_t slot) {
    std::vector<std::string> found;
    auto const match = as_pattern(from.prefix()) + ":{*}:jobs:[tc]*s";
    std::string cursor = "0";
    do {
        std::vector<std::string> words{"SCAN", cursor, "MATCH", match, "COUNT", std::to_string(keys_of_a_scan)};
        auto asking = from.command(slot, std::move(words));
        auto const said = co_await std::move(asking);
        cursor = said[0].text();
        for (auto const key : said[1])
            if (auto name = name_in(key.text(), from.prefix())) found.push_back(std::move(*name));
    } while (cursor != "0");
    co_return found;
}

task<std::vector<std::string>> scan(reader from) {
    auto asking = from.nodes();
    auto const nodes = co_await std::move(asking);
    std::vector<task<std::vector<std::string>>> scans;
    for (auto const slot : nodes) scans.push_back(scan_node(from, slot));
    auto scanning = when_all(std::move(scans));
    auto const lists = co_await std::move(scanning);
    std::set<std::string> all;
    for (auto const& list : lists) all.insert(list.begin(), list.end());
    co_return std::vector<std::string>(all.begin(), all.end());
}

}  // namespace

task<void> job_names::search::run(reader from, std::shared_ptr<search> into, std::size_t most) {
    auto made = std::make_shared<found_names>();
    std::exception_ptr failure;
    try {
        auto scanning = scan(std::move(from));
        made->names = co_await std::move(scanning);
    } catch (...) {
        failure = std::current_exception();
    }
    if (made->names.size() > most) {
        made->left_out = made->names.size() - most;
        made->names.resize(most);
    }
    auto const now = clock::now();
    std::lock_guard const lock{into->mutex};
    into->is_running = false;
    into->next = now + (failure ? clock::duration{after_failure} : std::max<clock::duration>(between_searches, 20 * (now - into->begun)));
    if (!failure) into->found = std::move(made);
    into->failure = failure;
    into->ended.notify_all();
}

job_names::job_names(client& by, std::size_t most) : client_(by), most_(most), search_(std::make_shared<search>()) {}

std::shared_ptr<found_names const> job_names::last() {
    auto& of = *search_;
    std::unique_lock lock{of.mutex};
    auto const now = clock::now();
    if (!of.is_running && now >= of.next) {
        of.is_running = true;
        of.begun = now;
        lock.unlock();
        auto work = search::run(reader{detail::core_access::of(client_)}, search_, most_);
        start(std::move(work), [](std::exception_ptr) {});  // on the client's I/O thread
        lock.lock();
    }
    if (of.found) {
        if (of.found->names.empty() && of.failure) std::rethrow_exception(of.failure);  // who asks for counts would not hear of it from these
        return of.found;
    }
    of.ended.wait_until(lock, of.begun + listing_limit, [&] { return !of.is_running; });
    if (of.found) return of.found;
    if (!of.is_running && of.failure) std::rethrow_exception(of.failure);
    throw unavailable_error{"the names of jobs are being looked for; ask again in some seconds"};
}

}  // namespace lockstep::dashboard
