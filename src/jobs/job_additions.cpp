#include "jobs/job_additions.hpp"

#include "base/words.hpp"
#include "core/core.hpp"
#include "lease/pause.hpp"
#include "scripts/all.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <exception>
#include <iterator>
#include <string_view>

namespace lockstep::detail {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t most_together = 128;  // jobs in a call, unless it is one flow

void ignore(std::exception_ptr) noexcept {}

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
    } catch (error const& problem) {
        while (!self->waiting_.empty()) self->waiting_.front().fail(problem.reason(), problem.what());
        co_return;
    }
    while (!self->waiting_.empty()) start(send(self, self->next()), ignore);
}

job_additions::load job_additions::next() {
    load found{waiting_.front().at, {}, {}};
    while (!waiting_.empty()) {
        auto& one = waiting_.front();
        auto const first = found.words.size(), end = first + one.words.size();
        if (first != 0 && end > most_together * addition::words_of_each) break;
        waiting_.pop_front();
        found.parcels.push_back({&one, first, end});
        if (first == 0) found.words = std::move(one.words);
        else std::move(one.words.begin(), one.words.end(), std::back_inserter(found.words));
    }
    return found;
}

task<void> job_additions::send(std::shared_ptr<job_additions> self, load what) {
    for (auto& one : what.parcels) {
        if (one.from != nullptr) one.from->place = &one.from;
    }
    std::vector<std::string> keys{what.at->what().key(), self->types_, what.at->what().key_of("absent")};
    try {
        auto asking = depot::ask_once(what.at, scripts::job_add, std::move(keys), what.parcels.size() == 1 ? std::move(what.words) : what.words);
        auto const answer = co_await std::move(asking);
        self->added(what, answer);
    } catch (error const& problem) {
        self->failed(what, problem);
    }
}

void job_additions::added(load const& what, std::string_view answer) {
    auto const batch = base::cut(answer, ' ');
    std::map<std::size_t, std::string_view> twins;
    while (!answer.empty()) {
        auto const word = base::cut(answer, ' ');
        auto const sign = word.find('=');
        twins[static_cast<std::size_t>(read_number(word.substr(0, sign)))] = word.substr(sign + 1);
    }
    for (auto const& one : what.parcels) {
        if (one.from == nullptr) continue;
        for (auto n = one.first / addition::words_of_each + 1; n <= one.end / addition::words_of_each; ++n) {
            auto const twin = twins.find(n);
            if (twin == twins.end()) one.from->ids.emplace_back(fmt::format("{}-{}f", batch, n), true);
            else one.from->ids.emplace_back(twin->second, false);
        }
        one.from->place = nullptr;
        one.from->finish();
    }
}

/// If the server found fault with one of several, nothing was written: each is sent for itself.
void job_additions::failed(load& what, error const& problem) noexcept {
    bool const is_refused = problem.reason() == errc::invalid_argument || std::string_view{problem.what()}.starts_with("LOCKSTEP_FORMAT");
    for (auto& one : what.parcels) {
        if (one.from == nullptr) continue;
        one.from->place = nullptr;
        if (!is_refused || what.parcels.size() == 1) {
            one.from->fail(problem.reason(), problem.what());
            continue;
        }
        auto const begin = what.words.begin();
        std::vector<std::string> words(begin + static_cast<std::ptrdiff_t>(one.first), begin + static_cast<std::ptrdiff_t>(one.end));
        start(send(shared_from_this(), {one.from->at, std::move(words), {{one.from, 0, one.end - one.first}}}), ignore);
    }
}

void addition::leave() noexcept {
    unlink();
    if (place != nullptr) *place = nullptr;
}

}  // namespace lockstep::detail
