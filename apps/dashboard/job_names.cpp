#include "dashboard/job_names.hpp"

#include "base/names.hpp"
#include "observe/listing.hpp"
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

constexpr std::size_t questions_at_once = 200;
constexpr seconds between_searches{2};
constexpr seconds after_failure{1};
constexpr seconds listing_limit{2};

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

task<std::vector<std::string>> look_up(reader from) {
    auto reading = observe::read_index(from);
    auto const listed = co_await std::move(reading);
    std::vector<std::string> names;
    std::vector<task<reply>> questions;
    for (auto const& one : listed) {
        auto name = name_in(one.key, from.prefix());
        if (!name) continue;
        names.push_back(std::move(*name));
        questions.push_back(from.at(one.key, {"EXISTS", one.key}));
    }
    auto asking = observe::in_groups(std::move(questions), questions_at_once);
    auto const answers = co_await std::move(asking);
    std::set<std::string> all;
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (answers[i].integer() != 0) all.insert(std::move(names[i]));
    }
    co_return std::vector<std::string>(all.begin(), all.end());
}

}  // namespace

task<void> job_names::search::run(reader from, std::shared_ptr<search> into, std::size_t most) {
    auto made = std::make_shared<found_names>();
    std::exception_ptr failure;
    try {
        auto looking = look_up(std::move(from));
        made->names = co_await std::move(looking);
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
