#include "jobs/job_additions.hpp"

#include "base/words.hpp"
#include "core/core.hpp"
#include "lease/pause.hpp"
#include "scripts/all.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <exception>
#include <iterator>
#include <map>
#include <string_view>

namespace lockstep::detail {
namespace {

using namespace std::chrono_literals;
using load = std::shared_ptr<added_load>;

constexpr std::size_t most_together = 128;         // jobs in a call, unless it is one flow
constexpr std::size_t most_bytes_together = 1 << 20;

void ignore(std::exception_ptr) noexcept {}

std::size_t bytes_of(addition const& what) noexcept {
    std::size_t sum = 0;
    for (auto const& one : what.words) sum += one.size();
    return sum;
}

void fail_all(added_load& what, std::exception_ptr const& why) noexcept {
    for (auto& one : what.parcels) {
        if (auto* const from = std::exchange(one.from, nullptr)) from->fail(why);
    }
}

void finish_all(added_load& what, std::string_view answer) {
    auto const batch = base::cut(answer, ' ');
    std::map<std::size_t, std::string_view> twins;
    while (!answer.empty()) {
        auto const word = base::cut(answer, ' ');
        auto const sign = word.find('=');
        twins[static_cast<std::size_t>(read_number(word.substr(0, sign)))] = word.substr(sign + 1);
    }
    for (auto& one : what.parcels) {
        if (one.from == nullptr) continue;
        for (auto n = one.first / addition::words_of_each + 1; n <= one.end / addition::words_of_each; ++n) {
            auto const twin = twins.find(n);
            if (twin == twins.end()) one.from->ids.emplace_back(fmt::format("{}-{}f", batch, n), true);
            else one.from->ids.emplace_back(twin->second, false);
        }
        std::exchange(one.from, nullptr)->finish();
    }
}

bool was_refused(error const& problem) noexcept {
    return problem.reason() == errc::invalid_argument || std::string_view{problem.what()}.starts_with("LOCKSTEP_FORMAT");
}

/// Each for itself.
std::vector<load> parts_of(added_load& what) {
    std::vector<load> all;
    for (auto& one : what.parcels) {
        if (one.from == nullptr) continue;
        auto const begin = what.words.begin();
        std::vector<std::string> words(begin + static_cast<std::ptrdiff_t>(one.first), begin + static_cast<std::ptrdiff_t>(one.end));
        all.push_back(std::make_shared<added_load>(added_load{one.from->at, std::move(words), {{one.from, 0, one.end - one.first}}, std::stop_source{}}));
    }
    for (auto& one : what.parcels) one.from = nullptr;
    for (auto const& one : all) one->parcels.front().from->in = one;
    return all;
}

}  // namespace

void job_additions::enter(addition& what) {
    if (owner_->closed()) return what.fail(errc::cancelled, "the client is closed");
    bool const is_first = waiting_.empty();
    waiting_.push_back(what);
    if (is_first) start(send_all(shared_from_this()), ignore);
}

task<void> job_additions::send_all(std::shared_ptr<job_additions> self) {
    try {
        engine::pause turn{self->owner_, 0ms};  // behind all who come in this one
        co_await turn;
        while (!self->waiting_.empty()) dispatch(self, self->next());
    } catch (...) {
        while (!self->waiting_.empty()) self->waiting_.front().fail(std::current_exception());
    }
}

load job_additions::next() {
    auto found = std::make_shared<added_load>();
    found->at = waiting_.front().at;
    std::size_t jobs = 0, bytes = 0, count = 0;
    for (auto& one : waiting_) {
        jobs += one.words.size() / addition::words_of_each;
        bytes += bytes_of(one);
        if (!found->parcels.empty() && (jobs > most_together || bytes > most_bytes_together)) break;
        found->parcels.push_back({&one, 0, 0});
        count += one.words.size();
    }
    found->words.reserve(count);
    for (auto& one : found->parcels) {
        one.first = found->words.size();
        std::move(one.from->words.begin(), one.from->words.end(), std::back_inserter(found->words));
        one.end = found->words.size();
        one.from->in = found;
        one.from->unlink();
    }
    return found;
}

void job_additions::dispatch(std::shared_ptr<job_additions> const& self, load const& what) noexcept {
    try {
        start(send(self, what), ignore);
    } catch (...) {
        fail_all(*what, std::current_exception());
    }
}

task<void> job_additions::send(std::shared_ptr<job_additions> self, load what) {
    std::exception_ptr why;
    bool is_refused = false;
    try {
        std::vector<std::string> keys{what->at->what().key(), self->types_, what->at->what().key_of("absent")};
        auto words = what->parcels.size() == 1 ? std::move(what->words) : what->words;
        auto asking = with_stop_token(depot::ask_once(what->at, scripts::job_add, std::move(keys), std::move(words)), what->unwanted.get_token());
        auto const answer = co_await std::move(asking);
        finish_all(*what, answer);
    } catch (error const& problem) {
        why = std::current_exception();
        is_refused = was_refused(problem) && what->parcels.size() > 1;
    } catch (...) {
        why = std::current_exception();
    }
    if (is_refused) {
        try {
            for (auto const& one : parts_of(*what)) dispatch(self, one);
        } catch (...) {
            why = std::current_exception();
        }
    }
    if (why) fail_all(*what, why);
}

void added_load::leave(addition const& who) noexcept {
    bool is_wanted = false;
    for (auto& one : parcels) {
        if (one.from == &who) one.from = nullptr;
        is_wanted = is_wanted || one.from != nullptr;
    }
    if (!is_wanted) unwanted.request_stop();
}

void addition::leave() noexcept {
    unlink();
    if (auto const call = std::move(in)) call->leave(*this);
}

}  // namespace lockstep::detail
