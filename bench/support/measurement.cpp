#include "support/measurement.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>

namespace lockstep::bench {

summary summarize(std::vector<double> values) {
    if (values.empty()) return {};
    std::sort(values.begin(), values.end());
    auto const middle = values.size() / 2;
    auto const median = values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
    return {median, values.front(), values.back()};
}

rounds::rounds(std::vector<contender> const& contenders, settings const& chosen) {
    auto const began = std::chrono::steady_clock::now();
    for (std::size_t round = 0; round != chosen.rounds; ++round) {
        if (round != 0 && std::chrono::steady_clock::now() - began > chosen.most_per_case) break;
        results_.emplace_back(contenders.size());
        for (std::size_t turn = 0; turn != contenders.size(); ++turn) {
            auto const which = (round + turn) % contenders.size();
            auto& result = results_[round][which] = contenders[which].run();
            if (!(result.seconds > 0))
                throw std::runtime_error(contenders[which].name + " ran too short to be measured");
        }
    }
}

summary rounds::of(std::size_t contender, figure what) const {
    std::vector<double> values;
    for (auto const& round : results_) values.push_back((round[contender].*what)());
    return summarize(std::move(values));
}

summary rounds::ratio(std::size_t contender, std::size_t baseline, figure what) const {
    std::vector<double> values;
    for (auto const& round : results_) values.push_back((round[contender].*what)() / (round[baseline].*what)());
    return summarize(std::move(values));
}

}  // namespace lockstep::bench
