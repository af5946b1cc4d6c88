#include "base/host.hpp"
#include "lease/kind.hpp"
#include "observe/audit.hpp"
#include "observe/picture.hpp"
#include "resp/cursor.hpp"
#include "scripts/all.hpp"

#include <lockstep/error.hpp>
#include <lockstep/log.hpp>
#include <lockstep/monitor.hpp>

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

// What a monitor can do to a hold; audit.hpp has the record of who did it.

namespace lockstep {
namespace {

using observe::reader;

struct deed {
    std::string action;
    hold_info which;
    bool force;
    std::string by;
    std::string reason;
};

std::string this_user() {
    std::array<char, 1'024> room{};
    passwd entry{};
    passwd* found = nullptr;
    if (::getpwuid_r(::geteuid(), &entry, room.data(), room.size(), &found) == 0 && found != nullptr) return found->pw_name;
    return std::to_string(::geteuid());
}

std::string owner_text(client_info const& who) {
    return who.name.empty() ? who.id : fmt::format("{} {} {}", who.name, who.host, who.pid);
}

task<std::string> write_deed(reader from, deed const& what) {
    observe::audit_fields fields{{"action", what.action}, {"name", what.which.name}, {"kind", what.which.kind}, {"hold", what.which.id},
                                 {"fence", std::to_string(what.which.fence)}, {"owner", owner_text(what.which.owner)}, {"by", what.by}};
    if (!what.reason.empty()) fields.emplace_back("reason", what.reason);
    return observe::append_audit(std::move(from), std::move(fields));
}

task<std::int64_t> publish(reader from, std::string hold, char mark) {
    auto sending = from.command(-1, {"PUBLISH", from.prefix() + ":wake:" + std::string{observe::client_of(hold)}, mark + hold});
    auto const said = co_await std::move(sending);
    co_return said.integer();
}

/// As the lock's own client would have it in a Cluster, or elsewhere.
std::string rules_of(reader const& from, std::string const& key) {
    auto const channel = from.owner()->is_cluster() ? key.substr(0, key.rfind(':')) + ":wake:" : from.prefix() + ":wake:";
    return fmt::format("500 3600000 {}", channel);
}

/// What is done is done: trouble with telling of it is only logged.
task<void> tell_of(reader from, std::vector<std::string> holds, std::string entry, std::string outcome) {
    try {
        for (auto const& one : holds) {
            auto telling = publish(from, one, '!');
            co_await std::move(telling);
        }
    } catch (error const& problem) {
        log(log_level::warning, fmt::format("what became of a release ({}) could not be told: {}", outcome, problem.what()));
    }
    auto closing = observe::append_outcome(std::move(from), std::move(entry), std::move(outcome));
    co_await std::move(closing);
}

/// The hold as it is now, and when it ends; nothing: it is over. And the other one of a pair that is shown as one (`show_pairs_once`).
struct current {
    hold_info is;
    std::int64_t ends_ms;
    std::optional<std::pair<std::string, std::int64_t>> second{};  ///< its id and its end
};
task<std::optional<current>> look_up(reader from, hold_info which) {
    auto looking = observe::take_picture(from, observe::survey_terms{{.name = which.name, .holders = observe::all_holds, .waiters = 0}, false});
    auto const seen = co_await std::move(looking);
    std::optional<current> found;
    for (auto const& object : seen.seen.objects) {
        if (object.is.kind != which.kind) continue;
        for (auto const& one : object.holds) {
            if (one.id == which.id) found.emplace(current{observe::describe(seen, object, one), one.ends_ms});
        }
    }
    for (auto const& object : seen.seen.objects) {
        for (auto const& one : object.holds) {
            if (found && observe::is_pair(found->is, observe::describe(seen, object, one))) found->second.emplace(one.id, one.ends_ms);
        }
    }
    co_return found;
}

[[noreturn]] void refuse(hold_info const& held, std::string_view why) {
    auto const who = held.owner.name.empty() ? fmt::format("client {}", held.owner.id)
                                             : fmt::format("{} (pid {} on {})", held.owner.name, held.owner.pid, held.owner.host);
    throw invalid_argument_error(fmt::format("'{}' is held by {}, {}: have it released there, ask for it, or use force", held.name, who, why));
}

/// Ends the other one of a pair, and returns what was ended with it. Its owner gives it back itself when it hears that the first is lost: only one that is gone, or
/// does not listen, needs this, so that it cannot be done is no failure.
task<std::vector<std::string>> end_second(reader from, current of, bool force) {
    std::vector<std::string> ended;
    auto const key = from.key(of.is.name, "shared");
    auto ending = from.once(engine::find_kind("shared")->evict, {key}, {of.second->first, rules_of(from, key), force ? std::string{} : std::to_string(of.second->second)});
    try {
        auto const said = co_await std::move(ending);
        for (resp::cursor rest{said, 2}; rest.left() != 0;) ended.emplace_back(rest.next().text());
    } catch (error const& problem) {
        log(log_level::warning, fmt::format("'{}' was released, but not as a shared mutex, where it ends by itself: {}", of.is.name, problem.what()));
    }
    co_return ended;
}

task<bool> run_release(reader from, deed what) {
    auto looking = look_up(from, what.which);
    auto const now = co_await std::move(looking);
    if (!now) co_return false;
    what.which = now->is;
    if (!what.force && !now->is.stale) refuse(now->is, now->is.owner.name.empty() ? "of which nothing is known" : "which is there, as far as is known here");
    auto noting = write_deed(from, what);
    auto const entry = co_await std::move(noting);
    auto const key = from.key(now->is.name, now->is.kind);
    auto const& kind = *engine::find_kind(now->is.kind);
    std::vector<std::string> keys{key};
    if (kind.is_election) keys.push_back(from.key(now->is.name, "changes"));
    // Without force only as it was seen: if it was renewed since, its owner is alive.
    auto ending = from.once(kind.evict, keys, {now->is.id, rules_of(from, key), what.force ? std::string{} : std::to_string(now->ends_ms)});
    reply said;
    std::exception_ptr unknown;
    try {
        said = co_await std::move(ending);
    } catch (indeterminate_error const&) {
        unknown = std::current_exception();
    }
    std::vector<std::string> ended{now->is.id};
    std::string outcome = "unknown";
    if (!unknown) {
        outcome = said[0].text() == "released" ? "done" : said[0].text();
        ended.clear();
        for (resp::cursor rest{said, 2}; rest.left() != 0;) ended.emplace_back(rest.next().text());
    }
    if (outcome == "done" && now->second) {
        auto ending_second = end_second(from, *now, what.force);
        auto const more = co_await std::move(ending_second);
        ended.insert(ended.end(), more.begin(), more.end());
    }
    auto telling = tell_of(from, std::move(ended), entry, outcome);
    co_await std::move(telling);
    if (unknown) std::rethrow_exception(unknown);
    if (outcome == "renewed") refuse(now->is, "which has just renewed it");
    co_return outcome == "done";
}

task<bool> run_ask(reader from, deed what) {
    auto noting = write_deed(from, what);
    auto const entry = co_await std::move(noting);
    auto telling = publish(from, what.which.id, '~');
    bool heard = co_await std::move(telling) > 0;
    if (!heard && from.owner()->is_cluster()) {  // there PUBLISH counts only those who listen at the node that it was sent to
        std::string const client{observe::client_of(what.which.id)};
        auto counting = observe::take_census(from, {client});
        auto const people = co_await std::move(counting);
        heard = people.contains(client) && people.at(client).is.connected;
    }
    std::string outcome = heard ? "done" : "unheard";
    auto closing = observe::append_outcome(std::move(from), entry, std::move(outcome));
    co_await std::move(closing);
    co_return heard;
}

deed checked(reader const& from, hold_info which, release_options const& options, std::string action) {
    from.key(which.name, which.kind);
    if (engine::find_kind(which.kind) == nullptr || which.id.find('.') == std::string::npos) {
        throw invalid_argument_error(fmt::format("'{}' of kind '{}' is no hold that could be ended; take one that active() shows", which.id, which.kind));
    }
    auto by = options.by.empty() ? this_user() + '@' + base::host_name() : std::string{options.by};
    return {std::move(action), std::move(which), options.force, std::move(by), std::string{options.reason}};
}

reader reader_of(client& by, observe::latest_notes& notes) {
    auto const& core = detail::core_access::of(by);
    core->require_same_process();
    return reader{core, notes.begin()};
}

}  // namespace

task<bool> monitor::async_release(hold_info which, release_options options) {
    auto from = reader_of(*client_, *notes_);
    auto what = checked(from, std::move(which), options, options.force ? "force-release" : "release");
    return run_release(std::move(from), std::move(what));
}
bool monitor::release(hold_info const& which, release_options options) { return sync_wait(async_release(which, options)); }

task<bool> monitor::async_ask(hold_info which, release_options options) {
    auto from = reader_of(*client_, *notes_);
    auto what = checked(from, std::move(which), options, "ask");
    return run_ask(std::move(from), std::move(what));
}
bool monitor::ask(hold_info const& which, release_options options) { return sync_wait(async_ask(which, options)); }

task<std::vector<audit_entry>> monitor::async_audit(std::size_t most) { return observe::read_audit(reader_of(*client_, *notes_), most); }
std::vector<audit_entry> monitor::audit(std::size_t most) { return sync_wait(async_audit(most)); }

}  // namespace lockstep
