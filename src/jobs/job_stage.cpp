#include "jobs/job_stage.hpp"

#include "base/random.hpp"
#include "base/words.hpp"
#include "messaging/raw_queue_parts.hpp"
#include "scripts/all.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace lockstep::detail {
namespace {

constexpr std::size_t most_in_one_call = 250;  // jobs of a flow that is added by one call
constexpr std::size_t most_kids = 60;          // in one element
constexpr std::size_t part_bytes = 256U << 10;
constexpr std::size_t part_size = 200;

/// What is sent, as src/scripts/include/job_stage_enter.lua wants it.
class staged_flow {
public:
    staged_flow(job_office const& office, depot const& at, std::vector<job_flow::node> const& jobs) : office_(office), at_(at), jobs_(jobs) {
        link();
        write();
        keys_ = {office.all().key_of("staged:" + base::random_id())};
        for (auto const& one : jobs) types_.insert(one.type);
    }

    std::vector<std::string> const& keys() const noexcept { return keys_; }
    bool is_sent() const noexcept { return sent_ == elements_.size(); }
    /// Point into this.
    std::vector<argument> const& next_part() {
        std::size_t bytes = 0;
        part_.assign(1, argument{sent_});
        for (next_ = sent_; next_ != elements_.size() && bytes < part_bytes && next_ - sent_ < part_size; ++next_) {
            bytes += elements_[next_].size();
            part_.emplace_back(elements_[next_]);
        }
        return part_;
    }
    void part_was_sent(std::int64_t size) {
        if (size != static_cast<std::int64_t>(next_)) too_late();
        sent_ = next_;
    }
    std::vector<std::string> keys_of_end() const {
        return {at_.what().key(), office_.all().key_of("types"), at_.what().key_of("absent"), keys_.front()};
    }
    std::vector<std::string> words_of_end() const {
        std::vector<std::string> words{std::to_string(elements_.size())};
        words.insert(words.end(), types_.begin(), types_.end());
        return words;
    }
    void added_as(std::string_view batch) {
        if (batch == "0") too_late();
        batch_ = batch;
        keys_ = {at_.what().key(), at_.what().key_of("absent")};
        part_ = {argument{at_.rules()}, argument{batch_}};
    }
    std::vector<argument> const& words_of_step() const noexcept { return part_; }
    std::vector<scheduled> ids() const {
        std::vector<scheduled> all;
        all.reserve(jobs_.size());
        for (std::size_t i = 0; i != jobs_.size(); ++i) all.push_back({fmt::format("{}/{}-{}f", jobs_[i].type, batch_, i + 1), true});
        return all;
    }

private:
    [[noreturn]] static void too_late() { throw unavailable_error("a flow of jobs: it could not be sent within a minute, and nothing was added"); }

    /// Parents stand there as #<place, less that of the child>.
    void link() {
        parents_.resize(jobs_.size());
        kids_.resize(jobs_.size());
        for (std::size_t i = 0; i != jobs_.size(); ++i) {
            for (auto const& parent : jobs_[i].parents) {
                auto const at = static_cast<std::size_t>(static_cast<std::int64_t>(i) + read_number(std::string_view{parent}.substr(1)));
                parents_[i].push_back(at);
                kids_[at].push_back(i);
            }
        }
    }
    std::string names_of(std::vector<std::size_t> const& places, std::size_t from, std::size_t to) const {
        std::string names;
        for (auto i = from; i != to; ++i) names += fmt::format("{}{}/#{}", i == from ? "" : " ", jobs_[places[i]].type, places[i] + 1);
        return names;
    }
    void write() {
        std::vector<std::size_t> missing(jobs_.size());  // children that are not written yet
        std::vector<std::size_t> line;
        for (std::size_t i = 0; i != jobs_.size(); ++i) {
            missing[i] = kids_[i].size();
            if (missing[i] == 0) line.push_back(i);
        }
        for (std::size_t at = 0; at != line.size(); ++at) {
            auto const i = line[at];
            auto const& one = jobs_[i];
            for (std::size_t from = 0; from < kids_[i].size(); from += most_kids) {
                elements_.push_back(fmt::format("K {} {} {}", one.type, i + 1, names_of(kids_[i], from, std::min(from + most_kids, kids_[i].size()))));
            }
            elements_.push_back(fmt::format("J {} {} {} {} {}\n{}", i + 1, one.type, one.place, parents_[i].size(), names_of(parents_[i], 0, parents_[i].size()), one.payload));
            for (auto const parent : parents_[i]) {
                if (--missing[parent] == 0) line.push_back(parent);
            }
        }
    }

    job_office const& office_;
    depot const& at_;
    std::vector<job_flow::node> const& jobs_;
    std::vector<std::vector<std::size_t>> parents_;
    std::vector<std::vector<std::size_t>> kids_;
    std::vector<std::string> elements_;
    std::set<std::string> types_;
    std::vector<std::string> keys_;
    std::vector<argument> part_;
    std::string batch_;
    std::size_t sent_ = 0;
    std::size_t next_ = 0;
};

}  // namespace

bool is_sent_in_parts(std::vector<job_flow::node> const& jobs) noexcept {
    return jobs.size() > most_in_one_call && std::none_of(jobs.begin(), jobs.end(), [](job_flow::node const& one) {
               return !one.single.empty() || !one.batch.empty() ||
                      std::any_of(one.parents.begin(), one.parents.end(), [](std::string const& parent) { return !parent.starts_with('#'); });
           });
}

task<std::vector<scheduled>> send_in_parts(std::shared_ptr<job_office> office, std::shared_ptr<depot> at, std::vector<job_flow::node> jobs) {
    auto const flow = std::make_shared<staged_flow>(*office, *at, jobs);
    while (!flow->is_sent()) {
        auto sending = run_on(at, scripts::job_stage, flow->keys(), flow->next_part());
        auto const size = co_await std::move(sending);
        flow->part_was_sent(size.integer());
    }
    auto ending = depot::ask_once(at, scripts::job_stage_end, flow->keys_of_end(), flow->words_of_end());
    auto const batch = co_await std::move(ending);
    flow->added_as(batch);
    try {
        bool is_entered = false;
        while (!is_entered) {
            auto entering = run_on(at, scripts::job_step, flow->keys(), flow->words_of_step());
            auto const left = co_await std::move(entering);
            is_entered = left.integer() == 0;
        }
    } catch (error const&) {  // it is added: workers enter the rest
    }
    co_return flow->ids();
}

}  // namespace lockstep::detail
