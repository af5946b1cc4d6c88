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
/// How many things `describe` has to look at.
std::size_t elements_of(picture const& from);
/// The same, with pairs shown once, away from the I/O thread where it is much.
task<snapshot> describe_pairs_once(reader from, picture seen);

/// What has a name exclusively for programs of every kind (`lockstep run`) holds its `lock` and, as the writer, its `shared` mutex: two holds of one client that are
/// shown as one, and their objects and queues as one, too. Of a client that waits for the second with the first in hand, only that it waits is shown.
void show_pairs_once(snapshot& seen);
/// Is this the second hold of such a pair, and that the first?
bool is_pair(hold_info const& lock, hold_info const& shared);

/// `describe` for one hold. Its owner is one that did not say who it is when the census does not know it.
hold_info describe(picture const& from, seen_object const& where, seen_hold const& which);
/// Ordered by name.
std::vector<client_info> clients_of(census const& people);
client_info owner_of(census const& people, std::string_view hold);

}  // namespace lockstep::observe
