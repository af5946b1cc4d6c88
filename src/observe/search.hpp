#pragma once

// Which objects there are: by the keys at the server, and buses, which have none, by the channels that somebody listens to.

#include "observe/survey.hpp"

#include <lockstep/monitor.hpp>

#include <string>
#include <vector>

namespace lockstep::observe {

struct found_object {
    std::string key;  ///< to be read; empty: there is nothing to read, `is` says all
    object_info is;
};

/// By name, then kind, then type.
bool comes_before(object_info const& a, object_info const& b);

/// `left_out` grows by what could not be found out.
task<std::vector<found_object>> find_objects(reader from, survey_terms const& what, std::size_t& left_out);

/// Of these names, as in `survey_terms`. None where this user of the server may not ask; nor where it has too many channels, which adds to `left_out`.
task<std::vector<found_object>> find_buses(reader from, std::string name, std::string pattern, std::size_t& left_out);

}  // namespace lockstep::observe
