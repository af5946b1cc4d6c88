#include "lease/tally.hpp"

#include "base/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

namespace lockstep::engine {
namespace {

void write(base::histogram const& times, std::string& text) {
    text += fmt::format(";{} {}", times.sum_us, times.max_us);
    for (auto const& one : times.buckets) text += fmt::format(" {}:{}", one.index, one.count);
}

/// Reads numbers one after the other; false from the first that is none.
class numbers {
public:
    explicit numbers(std::string_view text) noexcept : at_(text.data()), end_(text.data() + text.size()) {}

    template <class T>
    bool read(T& number) noexcept {
        auto const [next, problem] = std::from_chars(at_, end_, number);
        at_ = next;
        return problem == std::errc{};
    }
    bool skip(char what) noexcept {
        if (at_ == end_ || *at_ != what) return false;
        ++at_;
        return true;
    }

private:
    char const* at_;
    char const* end_;
};

bool read(numbers& from, base::histogram& times) {
    if (!from.skip(';') || !from.read(times.sum_us) || !from.skip(' ') || !from.read(times.max_us)) return false;
    while (from.skip(' ')) {
        unsigned index = 0;
        std::uint64_t number = 0;
        if (!from.read(index) || !from.skip(':') || !from.read(number) || index > base::histogram::last) return false;
        times.add(static_cast<std::uint8_t>(index), number);
    }
    return true;
}

ledger::total& total_of(std::vector<ledger::total>& all, kind const& what) {
    auto const found = std::find_if(all.begin(), all.end(), [&](ledger::total const& one) { return one.what == &what; });
    if (found != all.end()) return *found;
    return all.emplace_back(ledger::total{&what, {}});
}

}  // namespace

void counts::add(counts const& more) {
    acquisitions += more.acquisitions;
    waits += more.waits;
    timeouts += more.timeouts;
    losses += more.losses;
    held.add(more.held);
    waited.add(more.waited);
}

void counts::clear() noexcept {
    acquisitions = waits = timeouts = losses = 0;
    held.clear();
    waited.clear();
}

std::string counts::text() const {
    auto text = fmt::format("{} {} {} {}", acquisitions, waits, timeouts, losses);
    write(held, text);
    write(waited, text);
    return text;
}

std::optional<counts> counts::from(std::string_view text) {
    counts found;
    numbers in{text};
    bool const good = in.read(found.acquisitions) && in.skip(' ') && in.read(found.waits) && in.skip(' ') && in.read(found.timeouts) &&
                      in.skip(' ') && in.read(found.losses) && read(in, found.held) && read(in, found.waited);
    if (!good) return std::nullopt;
    return found;
}

counts& ledger::enter(std::shared_ptr<tally>& mine, kind const& what, std::string_view name) {
    if (open_.size() >= most_open) return total_of(rest_, what).all;
    if (open_.size() >= merge_at_) {  // objects that come and go leave a tally each until it is sent
        merge();
        merge_at_ = std::max<std::size_t>(1'024, 2 * open_.size());
    }
    if (!mine) mine = std::make_shared<tally>(what, name);
    mine->is_new = true;
    open_.push_back(mine);
    return *mine;
}

void ledger::give_up_names() {
    for (auto const& one : open_) {
        total_of(rest_, one->what).all.add(*one);
        one->clear();
        one->is_new = false;
    }
    open_.clear();
}

// One request must not name a name twice, since it reads what is there before it adds.
void ledger::merge() {
    std::map<std::pair<kind const*, std::string_view>, tally*> first;
    std::erase_if(open_, [&](std::shared_ptr<tally>& one) {
        auto const [known, is_first] = first.try_emplace({&one->what, one->name}, one.get());
        if (is_first) return false;
        known->second->add(*one);
        one->clear();
        one->is_new = false;
        return true;
    });
}

std::vector<std::string> ledger::take(std::size_t most) {
    std::vector<std::string> words;
    auto sums = std::exchange(rest_, {});
    auto const end = open_.begin() + static_cast<std::ptrdiff_t>(std::min(most, open_.size()));
    for (auto at = open_.begin(); at != end; ++at) {
        auto& one = **at;
        if (one.is_new) {  // or it was merged with another of its name
            words.push_back(fmt::format("{} {}", one.what.word, base::encode_name(one.name)));
            words.push_back(one.text());
        }
        total_of(sums, one.what).all.add(one);
        one.clear();
        one.is_new = false;
    }
    open_.erase(open_.begin(), end);
    for (auto const& one : sums) {
        words.emplace_back(one.what->word);
        words.push_back(one.all.text());
        total_of(sent_, *one.what).all.add(one.all);
    }
    return words;
}

std::vector<ledger::total> ledger::totals() const {
    auto all = sent_;
    for (auto const& one : rest_) total_of(all, *one.what).all.add(one.all);
    for (auto const& one : open_) total_of(all, one->what).all.add(*one);
    return all;
}

}  // namespace lockstep::engine
