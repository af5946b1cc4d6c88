#include "redis/cluster_router.hpp"

#include "base/random.hpp"
#include "redis/slot_map.hpp"
#include "redis/verdict.hpp"
#include "resp/encoder.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockstep::redis {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds parting_time{1'000};
constexpr milliseconds asking_time{1'000};
constexpr milliseconds answer_time{250};   // of a node that is connected, until the next one is asked
constexpr milliseconds connect_time{500};  // and of one that is not

endpoint target_of(connection const& from, judgement const& to) {
    return {.host = to.host.empty() ? from.peer().host : to.host, .port = to.port, .path = {}};
}

}  // namespace

struct cluster_router::state {
    explicit state(reactor& home) noexcept : changed(home) {}
    change changed;
    connection const* unreachable = nullptr;  // the one that failed last
    bool refreshing = false;
    bool wanted = false;  // again: something happened since it began
    bool idle = false;    // it waits for guests to leave, and may as well begin again
    bool closed = false;
};

/// CLUSTER SLOTS to one node, whose answer is waited for only so long.
class cluster_router::slots_query final : public operation {
public:
    explicit slots_query(std::shared_ptr<state> shared) noexcept : shared_(std::move(shared)) { repeatable = true; }
    ~slots_query() = default;

    void encode(resp::output& out) override { resp::append_command(out, "CLUSTER", "SLOTS"); }
    void complete(reply_view answer) noexcept override {
        if (answer.is_error()) return fail(errc::server, answer.text());
        answer_ = reply{answer};
        done_ = true;
        shared_->changed.wake();
    }
    void fail(errc reason, std::string_view why) noexcept override {
        problem_.emplace(reason, why);
        done_ = true;
        shared_->changed.wake();
    }
    bool done() const noexcept { return done_; }
    reply const& answer() const noexcept { return answer_; }
    std::optional<std::pair<errc, std::string>> const& problem() const noexcept { return problem_; }

private:
    std::shared_ptr<state> shared_;
    bool done_ = false;
    reply answer_;
    std::optional<std::pair<errc, std::string>> problem_;
};

cluster_router::cluster_router(std::shared_ptr<reactor> home, connection_settings settings, handshake greeting, std::vector<endpoint> seeds,
                               std::string prefix)
    : router(home), settings_(std::move(settings)), greeting_(std::move(greeting)), seeds_(std::move(seeds)),
      state_(std::make_shared<state>(*home)), listening_(*home, *this), migrations_(*this, listening_, std::move(prefix)) {}

cluster_router::~cluster_router() = default;

// ---- requests

cluster_router::node* cluster_router::choose(std::int16_t slot) noexcept {
    if (slot >= 0) return slots_[static_cast<std::size_t>(slot)];
    node* fallback = nullptr;
    std::size_t ready = 0;
    for (auto const& [name, one] : nodes_) {
        if (!one->mapped) continue;
        fallback = one.get();
        ready += one->link->ready() ? 1 : 0;
    }
    if (ready == 0) return fallback;
    auto pick = base::random_below(ready);
    for (auto const& [name, one] : nodes_) {
        if (one->mapped && one->link->ready() && pick-- == 0) return one.get();
    }
    return fallback;
}

void cluster_router::submit(operation& request) noexcept {
    if (state_->closed) return end(request, errc::cancelled, "the client is closed");
    if (refusal_) {
        auto const [reason, why] = *refusal_;
        refresh_soon();
        return end(request, reason, why);
    }
    if (auto* const at = choose(request.slot)) {
        at->asked = true;
        return at->link->submit(request);
    }
    if (known_) note_refusal(fmt::format("CLUSTERDOWN: no node has slot {}", request.slot));
    refresh_soon();
    try_later(request);
}

bool cluster_router::redirect(connection& from, operation& request, judgement const& to) noexcept {
    if (++redirects_of(request) > 16) {  // two nodes that send us to each other
        refresh_soon();
        note_refusal("MOVED or ASK, again and again");
        try_later(request);
        return true;
    }
    auto& target = node_at(target_of(from, to));
    if (to.what == verdict::moved) {
        assign(to.slot, target);
        refresh_soon();
    } else {
        target.asked_until = home().now() + asking_time;
        if (migrations_.asked(to.slot, *target.link, to_string(target.where), request)) {
            note_refusal("ASK: the slot has just begun to migrate");
            try_later(request);
            return true;
        }
        request.asking = true;
    }
    target.asked = true;
    target.link->submit(request);
    return true;
}

void cluster_router::assign(std::uint16_t slot, node& owner) noexcept {
    owner.mapped = true;
    slots_[slot] = &owner;
}

void cluster_router::not_master(connection&) noexcept { refresh_soon(); }

void cluster_router::connected(connection& at) noexcept {
    if (auto* const there = node_of(&at)) there->silent = false;
    listening_.connected(at);
}

void cluster_router::silent(connection& at) noexcept {
    if (auto* const there = node_of(&at)) there->silent = true;
    refresh_soon();
}

void cluster_router::disconnected(connection& at) noexcept {
    lose_track();
    migrations_.forget(at);
    listening_.disconnected(at);
    refresh_soon();
}

void cluster_router::failed(connection& at) noexcept {
    note_refusal(at.last_trouble());
    migrations_.forget(at);
    listening_.forget_second(at);
    refresh_soon();
    state_->unreachable = &at;
    state_->changed.wake();
}

void cluster_router::close() noexcept {
    state_->closed = true;
    state_->changed.wake();
    migrations_.close();
    end_delayed(errc::cancelled, "the client was closed");
    for (auto const& [name, one] : nodes_) one->link->close(errc::cancelled, "the client was closed");
    listening_.refuse_all(errc::cancelled, "the client was closed");
}

void cluster_router::add_to(statistics& sum) const noexcept {
    sum.requests += gone_.requests;
    sum.replies += gone_.replies;
    sum.batches += gone_.batches;
    sum.bytes_sent += gone_.bytes_sent;
    sum.bytes_received += gone_.bytes_received;
    sum.pushes += gone_.pushes;
    sum.connects += gone_.connects;
    sum.reconnects += gone_.reconnects;
    for (auto const& [name, one] : nodes_) one->link->add_to(sum);
}

bool cluster_router::reaches(std::int16_t slot) const noexcept {
    if (slot >= 0) return slots_[static_cast<std::size_t>(slot)] != nullptr && slots_[static_cast<std::size_t>(slot)]->link->ready();
    return std::any_of(nodes_.begin(), nodes_.end(), [](auto const& one) { return one.second->link->ready(); });
}

task<endpoint> cluster_router::find(std::int16_t slot) {
    if (auto* const at = choose(slot)) co_return at->where;
    refresh_soon();
    throw unavailable_error("the Cluster's slots are not known yet");
}

// ---- nodes

cluster_router::node& cluster_router::node_at(endpoint const& where) {
    auto& found = nodes_[to_string(where)];
    if (!found) {
        found = std::make_unique<node>();
        found->where = where;
        auto locate = [where]() -> task<endpoint> { co_return where; };
        auto settings = settings_;
        settings.reconnect_max = std::min(settings.reconnect_max, milliseconds{500});
        found->link = std::make_shared<connection>(home().shared_from_this(), settings, greeting_, locate,
                                                   static_cast<connection::events&>(*this));
    }
    return *found;
}

cluster_router::node* cluster_router::node_of(connection const* link) const noexcept {
    auto const found = std::find_if(nodes_.begin(), nodes_.end(), [&](auto const& one) { return one.second->link.get() == link; });
    return found == nodes_.end() ? nullptr : found->second.get();
}

connection* cluster_router::place(channel_kind kind, std::string_view channel, connection* now) noexcept {
    auto const* const there = now == nullptr ? nullptr : node_of(now);
    bool const anywhere = kind != channel_kind::shard;
    // A plain channel is the same on all nodes, so it stays where it is as long as it can.
    if (anywhere && there != nullptr && there->mapped && now->ready()) return now;
    auto* at = choose(static_cast<std::int16_t>(key_slot(channel)));  // for a plain one too: so the load is spread
    if (anywhere && at != nullptr && at == there) at = choose(-1);
    if (at == nullptr) refresh_soon();
    return at == nullptr ? nullptr : at->link.get();
}

bool cluster_router::misplaced(connection& at, judgement const& why) noexcept {
    bool const calm = !state_->refreshing;  // otherwise the refresh places it: two nodes may send us to each other
    refresh_soon();
    if (why.what == verdict::moved && calm) {
        assign(why.slot, node_at(target_of(at, why)));
        listening_.place_all();
    }
    return true;
}

// ---- the map

void cluster_router::refresh_soon() noexcept {
    state_->wanted = true;
    if (state_->idle) return state_->changed.wake();
    if (state_->closed || std::exchange(state_->refreshing, true)) return;
    start(refresh(state_), [](std::exception_ptr) {});
}

bool cluster_router::is_parting(node const& one) const noexcept {
    return !one.mapped && !one.silent && one.link->ready() && one.link->pending() != 0 && home().now() < one.parting_until;
}

bool cluster_router::out_of_reach() const noexcept {
    return !known_ || listening_.has_homeless() || std::any_of(nodes_.begin(), nodes_.end(), [this](auto const& entry) {
        auto const& one = *entry.second;
        bool const needed = one.link->pending() != 0 || listening_.uses(*one.link);
        return is_parting(one) || (needed && !one.link->ready());
    });
}

std::vector<std::shared_ptr<connection>> cluster_router::candidates() {
    std::vector<std::shared_ptr<connection>> ready;
    std::vector<std::shared_ptr<connection>> others;
    for (auto const& seed : seeds_) node_at(seed);
    for (auto const& [name, one] : nodes_) (one->link->ready() ? ready : others).push_back(one->link);
    auto const shuffle = [](auto& list) {
        for (auto i = list.size(); i > 1; --i) std::swap(list[i - 1], list[base::random_below(i)]);
    };
    shuffle(ready);
    shuffle(others);
    ready.insert(ready.end(), others.begin(), others.end());
    return ready;
}

task<bool> cluster_router::ask_for_slots(std::shared_ptr<state> shared, std::shared_ptr<connection> link) {
    slots_query query{shared};
    shared->unreachable = nullptr;
    auto const patience = home().now() + std::min(settings_.connect_timeout, link->ready() ? answer_time : connect_time);
    link->submit(query);
    while (!query.done() && shared->unreachable != link.get() && home().now() < patience && !shared->closed) {
        co_await shared->changed.until(patience);
    }
    if (shared->closed || !query.done()) co_return false;
    if (auto const& problem = query.problem()) {
        if (problem->first == errc::authentication || problem->first == errc::unsuitable_server) refusal_ = problem;
        note_refusal(problem->second);
        co_return false;
    }
    refusal_.reset();
    co_return apply(query.answer(), link->peer());
}

task<void> cluster_router::refresh(std::shared_ptr<state> shared) {
    while (!shared->closed && shared->wanted) {
        shared->wanted = false;
        refusal_.reset();
        bool answered = false;
        for (auto const& link : candidates()) {
            answered = co_await ask_for_slots(shared, link);
            if (shared->closed) co_return;
            if (answered) break;
        }
        if (refusal_ && !answered) {
            auto const [reason, why] = *refusal_;
            end_delayed(reason, why);
            listening_.refuse_all(reason, why);
        }
        // Not more often than this, however many requests are sent on; and again while somebody waits for a lost node.
        auto const pause = home().now() + milliseconds{50 + base::random_below(100)};
        while (home().now() < pause && !shared->closed) co_await shared->changed.until(pause);
        if (shared->closed) co_return;
        if (!refusal_ && out_of_reach()) shared->wanted = true;
        if (answered) co_await see_guests_off(shared);  // otherwise none has a place in a map, and the next request asks again
    }
    shared->refreshing = false;
}

task<void> cluster_router::see_guests_off(std::shared_ptr<state> shared) {
    // A node without slots, to which ASK led, goes with the first map after nobody was sent there for a while.
    shared->idle = true;
    while (!shared->wanted && !shared->closed) {
        auto const until = guests_stay_until();
        if (!until) break;
        if (home().now() >= *until) {
            shared->wanted = true;
        } else {
            co_await shared->changed.until(*until);
        }
    }
    shared->idle = false;
}

std::optional<reactor::clock::time_point> cluster_router::guests_stay_until() const noexcept {
    std::optional<reactor::clock::time_point> last;
    for (auto const& [name, one] : nodes_) {
        if (!one->mapped && !listening_.uses_second(*one->link)) last = last ? std::max(*last, one->asked_until) : one->asked_until;
    }
    return last;
}

bool cluster_router::apply(reply_view answer, endpoint const& source) {
    auto const ranges = read_slots(answer, source);
    if (ranges.empty()) {
        note_refusal("CLUSTERDOWN: no slot is assigned to any node");
        return false;
    }
    for (auto const& [name, one] : nodes_) {
        if (std::exchange(one->mapped, false)) one->parting_until = home().now() + parting_time;
    }
    slots_.fill(nullptr);
    for (auto const& range : ranges) {
        auto& owner = node_at(range.master);
        for (std::size_t slot = range.first; slot <= range.last; ++slot) assign(static_cast<std::uint16_t>(slot), owner);
    }
    known_ = true;
    migrations_.remove_finished([this](std::uint16_t slot) { return slots_[slot] == nullptr ? nullptr : slots_[slot]->link.get(); });
    reroute();
    listening_.place_all();
    return true;
}

void cluster_router::reroute() noexcept {
    // Nodes without slots go, and what waits for a node that is out of reach is placed by the new map.
    operation_list homeless;
    for (auto at = nodes_.begin(); at != nodes_.end();) {
        auto& one = *at->second;
        bool const stays = one.mapped || is_parting(one) || home().now() < one.asked_until || listening_.uses_second(*one.link);
        if (!stays) {
            if (one.asked) lose_track();  // a seed that is no master comes and goes with every map
            migrations_.forget(*one.link);
            listening_.forget(*one.link);
            one.link->retire(homeless, "the node has no slots any more");
            one.link->add_to(gone_);
            at = nodes_.erase(at);
            continue;
        }
        if (one.mapped && !one.link->ready()) one.link->take_waiting(homeless);
        ++at;
    }
    while (!homeless.empty()) {
        auto& request = homeless.front();
        release(request);
        submit(request);
    }
}

}  // namespace lockstep::redis
