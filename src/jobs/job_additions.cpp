#include "jobs/job_additions.hpp"

#include "base/words.hpp"
#include "core/core.hpp"
#include "scripts/all.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <map>
#include <string_view>

namespace lockstep::detail {
namespace {

constexpr std::size_t most_together = 128;         // jobs in a call, unless it is one flow
constexpr std::size_t most_bytes_together = 1 << 20;

std::size_t bytes_of(addition const& what) noexcept {
    std::size_t sum = 0;
    for (auto const& one : what.words) sum += one.size();
    return sum;
}

addition& as_addition(engine::passenger& who) noexcept { return static_cast<addition&>(who); }

/// `counts`: how many jobs each of those aboard had.
void finish_all(engine::shared_call& what, std::vector<std::size_t> const& counts, std::string_view answer) {
    auto const batch = base::cut(answer, ' ');
    std::map<std::size_t, std::string_view> twins;
    while (!answer.empty()) {
        auto const word = base::cut(answer, ' ');
        auto const sign = word.find('=');
        twins[static_cast<std::size_t>(read_number(word.substr(0, sign)))] = word.substr(sign + 1);
    }
    std::size_t n = 0;
    for (std::size_t i = 0; i != counts.size(); n += counts[i++]) {
        if (what.aboard[i] == nullptr) continue;
        auto& who = as_addition(*what.aboard[i]);
        for (auto number = n + 1; number <= n + counts[i]; ++number) {
            auto const twin = twins.find(number);
            if (twin == twins.end()) who.ids.emplace_back(fmt::format("{}-{}f", batch, number), true);
            else who.ids.emplace_back(twin->second, false);
        }
        what.aboard[i] = nullptr;
        who.finish();
    }
}

bool was_refused(error const& problem) noexcept {
    return problem.reason() == errc::invalid_argument || std::string_view{problem.what()}.starts_with("LOCKSTEP_FORMAT");
}

}  // namespace

std::size_t job_additions::count_together(line const& waiting) const {
    std::size_t jobs = 0, bytes = 0, count = 0;
    for (auto const& one : waiting) {
        auto const& what = static_cast<addition const&>(one);
        jobs += what.count();
        bytes += bytes_of(what);
        if (count != 0 && (jobs > most_together || bytes > most_bytes_together)) break;
        ++count;
    }
    return count;
}

task<void> job_additions::send(engine::shared_call& what) {
    auto const at = as_addition(*what.aboard.front()).at;
    std::vector<std::size_t> counts;
    std::vector<std::string> words;
    for (auto* const one : what.aboard) {
        auto& from = as_addition(*one);
        counts.push_back(from.count());
        if (what.aboard.size() == 1) words = std::move(from.words);
        else words.insert(words.end(), from.words.begin(), from.words.end());
    }
    try {
        std::vector<std::string> keys{at->what().key(), types_, at->what().key_of("absent")};
        auto asking = depot::ask_once(at, scripts::job_add, std::move(keys), std::move(words));
        auto const answer = co_await std::move(asking);
        finish_all(what, counts, answer);
    } catch (error const& problem) {
        if (counts.size() == 1 || !was_refused(problem)) throw;
        send_each(what);
    }
}

}  // namespace lockstep::detail
