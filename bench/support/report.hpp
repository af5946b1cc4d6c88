#pragma once

// The rows of a bench: a table for people, JSON for programs.

#include "support/measurement.hpp"
#include "support/settings.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::bench {

enum class bar_kind { none, ratio_at_least, ratio_at_most, value_at_least, value_at_most };

struct row {
    std::string name{};
    double value = 0;  ///< ours
    std::string unit{};
    std::optional<double> baseline{};  ///< the other's
    std::optional<summary> ratio{};    ///< value by baseline, from within the rounds
    bar_kind kind = bar_kind::none;
    double bar = 0;
    std::string note{};  ///< why there is no baseline

    bool ok() const noexcept;  ///< true where there is no bar
};

class report {
public:
    explicit report(std::string bench) : bench_(std::move(bench)) {}

    void add(row one) { rows_.push_back(std::move(one)); }
    bool empty() const noexcept { return rows_.empty(); }
    /// As the settings want it. Throws where no case had the name that was asked for.
    void print(settings const& chosen) const;

private:
    void print_table() const;
    void print_json() const;

    std::string bench_;
    std::vector<row> rows_;
};

}  // namespace lockstep::bench
