#include "observe/picture.hpp"

#include "base/stored_time.hpp"
#include "election/who.hpp"
#include "lease/kind.hpp"
#include "lease/registration.hpp"
#include "observe/offload.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace lockstep::observe {
namespace {

using std::chrono::milliseconds;

std::string use_of(std::string_view kind, std::int64_t permits) {
    auto const* const what = engine::find_kind(kind);
    return std::string{what == nullptr ? std::string_view{} : engine::use_of(*what, permits)};
}

/// A writer takes all the permits that a shared mutex has for readers: a large number that means nothing to people.
std::int64_t shown_permits(std::string_view kind, std::int64_t permits) { return kind == "shared" ? 1 : permits; }

/// Its client said who it is, has no connection and said nothing for longer than it would: dead, or cut off from the server. Which of these
/// nobody can tell from here, so even then only a fence makes it harmless to end its hold. Of one that never said who it is nothing is known.
bool is_stale(census const& people, seen_hold const& which, std::int64_t now_ms) {
    auto const known = people.find(client_of(which.id));
    if (which.offered || known == people.end()) return false;
    auto const silent = milliseconds{now_ms - known->second.said_ms};
    return !known->second.is.connected && silent > engine::registration::interval + milliseconds{2'000};
}

/// The server knows the end of the range that was reserved for a lock's process; which of them is in use, that one says.
std::uint64_t fence_of(census const& people, seen_object const& where, seen_hold const& which) {
    auto const known = people.find(client_of(which.id));
    if (which.offered) return 0;
    if (where.is.kind != "lock" || known == people.end()) return which.fence;
    for (auto const& said : known->second.holds) {
        if (said.name == where.is.name && said.kind == where.is.kind && said.fence <= which.fence && said.fence + 1'000 > which.fence) return said.fence;
    }
    return which.fence;
}

std::chrono::system_clock::time_point as_time(std::int64_t ms) { return base::time_of_ms(ms); }

void add_queue(picture const& from, seen_object const& object, snapshot& into) {
    std::map<std::string_view, std::size_t> places;  // of each client
    for (auto const& one : object.queue) ++places[client_of(one.id)];
    std::size_t position = 0;
    for (auto const& one : object.queue) {
        wait_info wait{.name = object.is.name,
                       .kind = object.is.kind,
                       .use = use_of(object.is.kind, one.permits),
                       .id = one.id,
                       .who = owner_of(from.people, one.id),
                       .position = ++position,
                       .permits = shown_permits(object.is.kind, one.permits),
                       .priority = one.priority};
        auto const who = from.people.find(client_of(one.id));
        if (who != from.people.end()) {
            for (auto const& said : who->second.waits) {
                if (said.name != wait.name || said.kind != wait.kind || said.use != wait.use) continue;
                wait.waiting_for = milliseconds{std::max<std::int64_t>(0, from.seen.now_ms - said.since_ms)};
                if (places[client_of(one.id)] == 1) wait.waiters = said.waiters;
            }
        }
        into.waits.push_back(std::move(wait));
    }
}

/// Those who wait at what nobody holds are in no queue: they say so themselves.
using visitors = std::map<std::pair<std::string_view, std::string_view>, std::vector<std::pair<citizen const*, said_wait const*>>>;  // by name and kind
visitors visitors_in(census const& people) {
    visitors all;
    for (auto const& [id, one] : people) {
        for (auto const& said : one.waits) {
            if (engine::find_kind(said.kind) == nullptr) all[{said.name, said.kind}].emplace_back(&one, &said);
        }
    }
    return all;
}

void add_visitors(picture const& from, visitors const& all, seen_object const& object, object_info& shown, snapshot& into) {
    auto const found = all.find({object.is.name, object.is.kind});
    if (found == all.end()) return;
    for (auto const& [one, said] : found->second) {
        ++shown.queue;
        into.waits.push_back({.name = said->name,
                              .kind = said->kind,
                              .use = said->use,
                              .who = one->is,
                              .waiters = said->waiters,
                              .permits = said->permits,
                              .waiting_for = milliseconds{std::max<std::int64_t>(0, from.seen.now_ms - said->since_ms)}});
    }
}

/// Those who hold or wait.
std::vector<std::string> clients_in(survey const& seen) {
    std::set<std::string> ids;
    for (auto const& object : seen.objects) {
        for (auto const& one : object.holds) ids.emplace(client_of(one.id));
        for (auto const& one : object.queue) ids.emplace(client_of(one.id));
        ids.insert(object.clients.begin(), object.clients.end());
    }
    return {ids.begin(), ids.end()};
}

}  // namespace

client_info owner_of(census const& people, std::string_view hold) {
    auto const found = people.find(client_of(hold));
    if (found != people.end()) return found->second.is;
    client_info unknown;
    unknown.id = client_of(hold);
    return unknown;
}

std::vector<client_info> clients_of(census const& people) {
    std::vector<client_info> made;
    for (auto const& [id, one] : people) made.push_back(one.is);
    std::sort(made.begin(), made.end(), [](client_info const& a, client_info const& b) {
        return std::tie(a.name, a.host, a.pid, a.id) < std::tie(b.name, b.host, b.pid, b.id);
    });
    return made;
}

hold_info describe(picture const& from, seen_object const& where, seen_hold const& which) {
    auto const now = from.seen.now_ms;
    auto const granted = static_cast<std::int64_t>(which.fence / 1'000);  // a fence is the time in µs, or a little more
    hold_info made{.name = where.is.name,
            .kind = where.is.kind,
            .use = use_of(where.is.kind, which.permits),
            .id = which.id,
            .owner = owner_of(from.people, which.id),
            .fence = fence_of(from.people, where, which),
            .permits = shown_permits(where.is.kind, which.permits),
            .offered = which.offered,
            .stale = is_stale(from.people, which, now),
            .held_for = milliseconds{which.offered ? 0 : std::max<std::int64_t>(0, now - granted)},
            .remaining = milliseconds{std::max<std::int64_t>(0, which.ends_ms - now)},
            .queue = where.is.queue};
    std::int64_t pid = 0;
    std::string host;
    detail::read_who(where.leader, pid, host, made.candidate);
    return made;
}

snapshot describe(picture const& from) {
    snapshot made;
    made.at = as_time(from.seen.now_ms);
    made.left_out = from.seen.left_out;
    auto const waiting = visitors_in(from.people);
    for (auto const& object : from.seen.objects) {
        auto shown = object.is;
        if (shown.kind == "shared") {
            shown.count = 0;
            shown.taken = static_cast<std::int64_t>(shown.holders);
        }
        for (auto const& one : object.holds) made.holds.push_back(describe(from, object, one));
        add_queue(from, object, made);
        add_visitors(from, waiting, object, shown, made);
        made.objects.push_back(std::move(shown));
    }
    made.clients = clients_of(from.people);
    return made;
}

bool is_pair(hold_info const& lock, hold_info const& shared) {
    return lock.kind == "lock" && shared.kind == "shared" && shared.use == "writer" && lock.name == shared.name && client_of(lock.id) == client_of(shared.id);
}

void show_pairs_once(snapshot& seen) {
    std::map<std::string, std::vector<hold_info const*>> locks;  // by name
    for (auto const& one : seen.holds) {
        if (one.kind == "lock" && !one.offered) locks[one.name].push_back(&one);
    }
    if (locks.empty()) return;
    // Objects are ordered by name.
    auto const object = [&](std::string const& name, std::string_view kind) -> object_info* {
        auto const [first, last] = std::ranges::equal_range(seen.objects, name, {}, &object_info::name);
        auto const found = std::find_if(first, last, [&](object_info const& one) { return one.kind == kind; });
        return found == last ? nullptr : &*found;
    };
    std::set<std::pair<std::string, std::string>> gone;  // objects, by name and kind
    // Of the object that is left, the queue is that of both.
    auto const merge = [&](std::string const& name, std::string_view from, std::string_view into) {
        auto* const leaves = object(name, from);
        auto* const stays = object(name, into);
        if (leaves == nullptr || stays == nullptr) return;
        leaves->holders -= std::min<std::size_t>(leaves->holders, 1);
        leaves->taken = static_cast<std::int64_t>(leaves->holders);
        stays->queue += std::exchange(leaves->queue, 0);
        if (leaves->holders == 0) gone.emplace(name, from);
    };
    std::set<std::string> ids;  // of the holds that go
    for (auto const& one : seen.holds) {
        auto const found = locks.find(one.name);
        if (found == locks.end() || one.kind != "shared" || one.offered) continue;
        if (std::none_of(found->second.begin(), found->second.end(), [&](auto const* lock) { return is_pair(*lock, one); })) continue;
        ids.insert(one.id);
        merge(one.name, "shared", "lock");
    }
    for (auto const& wait : seen.waits) {
        auto const found = locks.find(wait.name);
        if (found == locks.end() || wait.kind != "shared" || wait.use != "writer") continue;
        for (auto const* const lock : found->second) {
            if (client_of(lock->id) != client_of(wait.id) || !ids.insert(lock->id).second) continue;
            merge(wait.name, "lock", "shared");
        }
    }
    std::erase_if(seen.holds, [&](hold_info const& one) { return ids.contains(one.id); });
    std::erase_if(seen.objects, [&](object_info const& one) { return gone.contains({one.name, one.kind}); });
}

task<picture> take_picture(reader from, survey_terms what) {
    picture made;
    auto looking = take_survey(from, what);
    made.seen = co_await std::move(looking);
    task<census> asking;
    if (what.name.empty()) {
        asking = take_census(std::move(from));
    } else {
        auto ids = clients_in(made.seen);
        asking = take_census(std::move(from), std::move(ids));
    }
    made.people = co_await std::move(asking);
    co_return made;
}

std::size_t elements_of(picture const& from) {
    auto count = from.seen.objects.size() + from.people.size();
    for (auto const& one : from.seen.objects) count += one.holds.size() + one.queue.size();
    for (auto const& [id, one] : from.people) count += one.waits.size();
    return count;
}

task<snapshot> describe_pairs_once(reader from, picture seen) {
    auto const size = elements_of(seen);
    auto work = [seen = std::move(seen)] {
        auto shown = describe(seen);
        show_pairs_once(shown);
        return shown;
    };
    auto describing = offload(from, size, std::move(work));
    auto shown = co_await std::move(describing);
    shown.notes = from.notes();
    co_return shown;
}

}  // namespace lockstep::observe
