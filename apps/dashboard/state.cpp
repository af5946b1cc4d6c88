#include "dashboard/state.hpp"

#include "common/json.hpp"
#include "dashboard/text.hpp"

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <random>
#include <tuple>

namespace lockstep::dashboard {

namespace {

namespace json = boost::json;
using std::chrono::milliseconds;

constexpr std::size_t most_gone = 20'000;  // kept for pages that fell behind; beyond that they get everything
constexpr milliseconds same_time{60};      // a snapshot takes a moment, and its parts are of different ones

// Snapshots are compared after their spans have been made ends: then only a renewal moves them.
bool same(milliseconds a, milliseconds b, milliseconds tolerance) {
    return std::abs((a - b).count()) <= tolerance.count();
}

bool same(client_info const& a, client_info const& b) {
    auto const all = [](client_info const& c) {
        return std::tie(c.name, c.host, c.pid, c.version, c.since, c.connected, c.held, c.waiting);
    };
    return all(a) == all(b);
}
bool same(object_info const& a, object_info const& b) {
    auto const all = [](object_info const& o) { return std::tie(o.count, o.taken, o.holders, o.queue, o.delayed, o.dead, o.blocked, o.paused, o.groups); };
    return all(a) == all(b);
}
bool same(hold_info const& a, hold_info const& b) {
    auto const all = [](hold_info const& h) {
        return std::tie(h.use, h.owner.id, h.fence, h.permits, h.offered, h.stale, h.queue, h.candidate);
    };
    return all(a) == all(b) && same(a.held_for, b.held_for, same_time) && same(a.remaining, b.remaining, same_time);
}
bool same(wait_info const& a, wait_info const& b) {
    auto const all = [](wait_info const& w) { return std::tie(w.use, w.who.id, w.position, w.waiters, w.permits, w.priority); };
    return all(a) == all(b) && a.waiting_for.has_value() == b.waiting_for.has_value() &&
           (!a.waiting_for || same(*a.waiting_for, *b.waiting_for, same_time));
}

json::object part_of(std::string const& name, std::string const& kind) {
    json::object made{{"name", readable(name)}, {"kind", kind}};
    if (!is_utf8(name)) made["raw"] = percent_encoded(name);  // what the page asks for it by
    return made;
}

std::string text_of(client_info const& c) {
    return json::serialize(json::object{{"id", readable(c.id)},
                                        {"name", readable(c.name)},
                                        {"host", readable(c.host)},
                                        {"pid", c.pid},
                                        {"version", readable(c.version)},
                                        {"since_ms", apps::as_json(c.since)},
                                        {"connected", c.connected},
                                        {"held", c.held},
                                        {"waiting", c.waiting}});
}
std::string text_of(object_info const& o) {
    auto made = part_of(o.name, o.kind);
    made["count"] = apps::as_json(o.count);
    made["taken"] = o.taken;
    made["holders"] = o.holders;
    made["queue"] = o.queue;
    if (o.delayed != 0) made["delayed"] = o.delayed;
    if (o.dead != 0) made["dead"] = o.dead;
    if (o.blocked != 0) made["blocked"] = o.blocked;
    if (o.paused) made["paused"] = true;
    if (!o.type.empty()) made["type"] = o.type;
    if (!o.groups.empty()) made["groups"] = apps::as_json(o.groups);
    return json::serialize(made);
}
std::string text_of(hold_info const& h) {
    auto made = part_of(h.name, h.kind);
    made["use"] = h.use;
    made["id"] = readable(h.id);
    made["owner"] = readable(h.owner.id);
    made["fence"] = std::to_string(h.fence);
    made["permits"] = h.permits;
    made["offered"] = h.offered;
    made["stale"] = h.stale;
    made["queue"] = h.queue;
    made["since_ms"] = h.held_for.count();
    made["ends_at_ms"] = h.remaining.count();
    if (!h.candidate.empty()) made["candidate"] = readable(h.candidate);
    return json::serialize(made);
}
std::string text_of(wait_info const& w) {
    auto made = part_of(w.name, w.kind);
    made["use"] = w.use;
    made["id"] = readable(w.id);
    made["who"] = readable(w.who.id);
    made["position"] = w.position;
    made["waiters"] = w.waiters;
    made["permits"] = w.permits;
    if (w.priority != 0) made["priority"] = w.priority;
    if (w.waiting_for) {
        made["since_ms"] = w.waiting_for->count();
    } else {
        made["since_ms"] = nullptr;
    }
    return json::serialize(made);
}

std::optional<std::uint64_t> number_after(std::string_view seen, std::string_view epoch) {
    if (seen.size() <= epoch.size() || !seen.starts_with(epoch) || seen[epoch.size()] != '.') return std::nullopt;
    seen.remove_prefix(epoch.size() + 1);
    std::uint64_t number = 0;
    auto const read = std::from_chars(seen.data(), seen.data() + seen.size(), number);
    if (read.ec != std::errc{} || read.ptr != seen.data() + seen.size()) return std::nullopt;
    return number;
}

}  // namespace

state::state() {
    std::random_device random;
    epoch_ = std::to_string(random()) + std::to_string(random());
}

template <class Value>
void state::put(part<Value>& into, std::string key, Value value) {
    auto [place, fresh] = into.items.try_emplace(std::move(key));
    auto& known = place->second;
    known.seen = round_;
    if (!fresh && same(known.value, value)) return;
    known.value = std::move(value);
    known.json = text_of(known.value);
    known.changed = version_ + 1;
    news_ = true;
}

template <class Value>
void state::sweep(part<Value>& in) {
    for (auto place = in.items.begin(); place != in.items.end();) {
        if (place->second.seen == round_) {
            ++place;
            continue;
        }
        in.gone.emplace_back(version_ + 1, place->first);
        place = in.items.erase(place);
        news_ = true;
    }
    for (; in.gone.size() > most_gone; in.gone.pop_front()) forgotten_ = std::max(forgotten_, in.gone.front().first);
}

bool state::update(snapshot const& now) {
    ++round_;
    news_ = version_ == 0 || left_out_ != now.left_out || notes_ != now.notes;
    left_out_ = now.left_out;
    notes_ = now.notes;
    stale_ = waiting_ = connected_ = 0;
    milliseconds const at = std::chrono::duration_cast<milliseconds>(now.at.time_since_epoch());
    at_ms_ = at.count();

    for (auto client : now.clients) {
        connected_ += client.connected ? 1 : 0;
        auto key = readable(client.id);
        put(clients_, std::move(key), std::move(client));
    }
    // One that is gone is in no list any more, but what it held still names it.
    auto const mention = [&](client_info const& client) {
        auto key = readable(client.id);
        auto const known = clients_.items.find(key);
        if (known != clients_.items.end() && known->second.seen == round_) return;
        auto is = client;
        if (client.name.empty() && known != clients_.items.end())
            is = known->second.value;  // what it once said is forgotten there
        is.connected = client.connected;
        put(clients_, std::move(key), std::move(is));
    };
    for (auto object : now.objects) {
        auto key = object.kind + ':' + readable(object.name);
        if (!object.type.empty()) key += '/' + object.type;
        put(objects_, std::move(key), std::move(object));
    }
    for (auto hold : now.holds) {
        mention(hold.owner);
        stale_ += hold.stale ? 1 : 0;
        hold.held_for = at - hold.held_for;
        hold.remaining += at;
        auto key = hold.kind + ':' + readable(hold.id) + ':' + readable(hold.name);
        put(holds_, std::move(key), std::move(hold));
    }
    for (auto wait : now.waits) {
        mention(wait.who);
        waiting_ += static_cast<std::size_t>(std::max<std::int64_t>(wait.waiters, 0));
        if (wait.waiting_for) wait.waiting_for = at - *wait.waiting_for;
        auto const place = wait.id.empty() ? wait.who.id + '/' + wait.use : wait.id;
        auto key = wait.kind + ':' + readable(place) + ':' + readable(wait.name);
        put(waits_, std::move(key), std::move(wait));
    }
    sweep(objects_);
    sweep(holds_);
    sweep(waits_);
    sweep(clients_);
    if (news_) ++version_;
    return news_;
}

template <class Value>
void state::write(std::string& out, std::string& gone, part<Value> const& of, char const* name,
                  std::uint64_t since) const {
    std::string keys;
    out += std::string{out.back() == '{' ? "" : ","} + '"' + name + "\":[";
    for (auto const& [key, known] : of.items) {
        if (known.changed <= since) continue;
        if (out.back() != '[') out += ',';
        out += known.json;
    }
    out += ']';
    if (since == 0) return;
    for (auto at = of.gone.rbegin(); at != of.gone.rend() && at->first > since; ++at) {
        if (of.items.contains(at->second)) continue;  // and came back
        keys += (keys.empty() ? "" : ",") + json::serialize(json::string{at->second});
    }
    gone += std::string{gone.back() == '{' ? "" : ","} + '"' + name + "\":[" + keys + ']';
}

std::string state::message(std::string_view seen) const {
    auto since = number_after(seen, epoch_).value_or(0);
    if (since > version_ || since < forgotten_) since = 0;
    std::string set{"{"};
    std::string gone{"{"};
    write(set, gone, objects_, "objects", since);
    write(set, gone, holds_, "holds", since);
    write(set, gone, waits_, "waits", since);
    write(set, gone, clients_, "clients", since);
    json::array notes;
    for (auto const& one : notes_) notes.emplace_back(readable(one));
    return std::string{R"({"whole":)"} + (since == 0 ? "true" : "false") + R"(,"version":")" + version() +
           R"(","left_out":)" + std::to_string(left_out_) + R"(,"notes":)" + json::serialize(notes) + R"(,"set":)" +
           set + R"(},"gone":)" + gone + "}}";
}

}  // namespace lockstep::dashboard
