#include "redis/cluster_router.hpp"

#include "base/random.hpp"
#include "redis/verdict.hpp"
#include "resp/encoder.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockstep::redis {

struct cluster_router::state {
    explicit state(reactor& home) noexcept : changed(home) {}
    change changed;
    bool refreshing = false;
    bool wanted = false;  // again: something happened since it began
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

cluster_router::cluster_router(std::shared_ptr<reactor> home, connection_settings settings, handshake greeting, std::vector<endpoint> seeds)
    : router(home), settings_(std::move(settings)), greeting_(std::move(greeting)), seeds_(std::move(seeds)),
      state_(std::make_shared<state>(*home)), listening_(*this) {}

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
    if (auto* const at = choose(request.slot)) return at->link->submit(request);
    refresh_soon();
    try_later(request);
}

bool cluster_router::redirect(connection& from, operation& request, judgement const& to) noexcept {
    if (++redirects_of(request) > 16) {  // two nodes that send us to each other
        redirects_of(request) = 0;
        refresh_soon();
        note_refusal("MOVED or ASK, again and again");
        try_later(request);
        return true;
    }
    auto& target = node_at({.host = to.host.empty() ? from.peer().host : to.host, .port = to.port, .path = {}});
    if (to.what == verdict::moved) {
        target.mapped = true;
        slots_[to.slot] = &target;
        refresh_soon();
    } else {
        request.asking = true;
    }
    target.link->submit(request);
    return true;
}

void cluster_router::not_master(connection&) noexcept { refresh_soon(); }

void cluster_router::disconnected(connection& at) noexcept {
    listening_.disconnected(at);
    refresh_soon();
}

void cluster_router::failed(connection& at) noexcept {
    note_refusal(at.last_trouble());
    refresh_soon();
}

void cluster_router::close() noexcept {
    state_->closed = true;
    state_->changed.wake();
    end_delayed(errc::cancelled, "the client was closed");
    for (auto const& [name, one] : nodes_) one->link->close(errc::cancelled, "the client was closed");
    listening_.refuse_all(errc::cancelled, "the client was closed");
}

void cluster_router::add_to(statistics& sum) const noexcept {
    for (auto const& [name, one] : nodes_) one->link->add_to(sum);
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
        settings.reconnect_max = std::min(settings.reconnect_max, std::chrono::milliseconds{500});
        found->link = std::make_shared<connection>(home().shared_from_this(), settings, greeting_, locate,
                                                   static_cast<connection::events&>(*this));
    }
    return *found;
}

connection* cluster_router::place(channel_kind, std::string_view channel) noexcept {
    // A plain channel is everywhere; it goes by its slot too, so that the choice is stable and spread.
    auto* const at = choose(static_cast<std::int16_t>(key_slot(channel)));
    if (at == nullptr) refresh_soon();
    return at == nullptr ? nullptr : at->link.get();
}

// ---- the map

void cluster_router::refresh_soon() noexcept {
    state_->wanted = true;
    if (state_->closed || std::exchange(state_->refreshing, true)) return;
    start(refresh(state_), [](std::exception_ptr) {});
}

bool cluster_router::out_of_reach() const noexcept {
    return !known_ || std::any_of(nodes_.begin(), nodes_.end(), [](auto const& one) {
        return !one.second->link->ready() && one.second->link->pending() != 0;
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
    link->submit(query);
    auto const patience = home().now() + std::min<std::chrono::milliseconds>(settings_.connect_timeout, std::chrono::milliseconds{500});
    while (!query.done() && home().now() < patience && !shared->closed) co_await shared->changed.until(patience);
    if (shared->closed || !query.done()) co_return false;
    if (auto const& problem = query.problem()) {
        if (problem->first == errc::authentication || problem->first == errc::unsuitable_server) refusal_ = problem;
        note_refusal(problem->second);
        co_return false;
    }
    refusal_.reset();
    apply(query.answer(), link->peer());
    co_return true;
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
        if (refusal_ && !answered) end_delayed(refusal_->first, refusal_->second);
        // Not more often than this, however many requests are sent on; and again while somebody waits for a lost node.
        auto const pause = home().now() + std::chrono::milliseconds{50 + base::random_below(100)};
        while (home().now() < pause && !shared->closed) co_await shared->changed.until(pause);
        if (shared->closed) co_return;
        if (!refusal_ && out_of_reach()) shared->wanted = true;
    }
    shared->refreshing = false;
}

void cluster_router::apply(reply_view ranges, endpoint const& source) {
    if (!ranges.is_aggregate() || ranges.empty()) return;
    for (auto const& [name, one] : nodes_) one->mapped = false;
    slots_.fill(nullptr);
    for (auto const range : ranges) {
        if (range.size() < 3 || range[2].size() < 2) continue;
        auto const master = range[2];
        auto host = master[0].is_text() ? std::string{master[0].text()} : std::string{};
        if (host.empty() || host == "?") host = source.host;
        auto& owner = node_at({.host = std::move(host), .port = static_cast<std::uint16_t>(master[1].integer()), .path = {}});
        owner.mapped = true;
        auto const last = std::min<std::int64_t>(range[1].integer(), slot_count - 1);
        for (auto slot = std::max<std::int64_t>(range[0].integer(), 0); slot <= last; ++slot) slots_[static_cast<std::size_t>(slot)] = &owner;
    }
    known_ = true;
    reroute();
    listening_.place_all();
}

void cluster_router::reroute() noexcept {
    // Nodes without slots go, and what waits for a node that is out of reach is placed by the new map.
    operation_list homeless;
    for (auto at = nodes_.begin(); at != nodes_.end();) {
        auto& one = *at->second;
        bool const is_source = one.link->ready() && nodes_.size() == 1;
        if (!one.mapped && !is_source) {
            listening_.forget(*one.link);
            one.link->retire(homeless, "the node has no slots any more");
            at = nodes_.erase(at);
            continue;
        }
        if (!one.link->ready()) one.link->take_waiting(homeless);
        ++at;
    }
    while (!homeless.empty()) {
        auto& request = homeless.front();
        release(request);
        submit(request);
    }
}

}  // namespace lockstep::redis
