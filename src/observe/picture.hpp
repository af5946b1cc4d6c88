#pragma once

// Survey and census put together: what a snapshot shows.

#include "observe/census.hpp"
#include "observe/survey.hpp"

#include <lockstep/monitor.hpp>

namespace lockstep::observe {

struct picture {
    survey seen;
    census people;
};

/// Of one name, only the clients that hold it or wait for it are read.
task<picture> take_picture(reader from, survey_terms what);
snapshot describe(picture const& from);

/// `describe` for one hold. Its owner is one that did not say who it is when the census does not know it.
hold_info describe(picture const& from, seen_object const& where, seen_hold const& which);
/// Ordered by name.
std::vector<client_info> clients_of(census const& people);
client_info owner_of(census const& people, std::string_view hold);

}  // namespace lockstep::observe
