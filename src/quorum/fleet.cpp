#include "quorum/fleet.hpp"

#include "base/random.hpp"
#include "base/random_ids.hpp"
#include "quorum/grip.hpp"
#include "quorum/plan.hpp"
#include "quorum/room.hpp"
#include "redis/command.hpp"
#include "redis/operation.hpp"
#include "resp/encoder.hpp"

#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

namespace lockstep::quorum {
namespace {

constexpr std::size_t most_nodes = 63;
constexpr std::chrono::milliseconds settling_time{1'000};

void check_count(std::size_t nodes) {
    if (nodes >= 1 && nodes <= most_nodes) return;
    throw invalid_argument_error(fmt::format("redlock takes 1 to {} nodes, an odd number is best, not {}", most_nodes, nodes));
}

/// A server that has two votes could make a majority with itself.
void check_different(std::vector<std::shared_ptr<detail::core>> const& nodes) {
    std::set<std::string> seen;
    for (auto const& one : nodes) {
        if (seen.insert(one->description()).second) continue;
        throw invalid_argument_error(fmt::format("redlock: {} is given twice, and each node must be a server of its own", one->description()));
    }
}

std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> words;
    while (!text.empty()) {
        auto const end = std::min(text.find(' '), text.size());
        if (end != 0) words.emplace_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return words;
}

/// What closes with a client: the redlocks whose home it is.
class closer final : public detail::core::extension {
public:
    static closer& of(detail::core& owner) {
        return static_cast<closer&>(owner.extend("quorum", [](detail::core&) { return std::make_unique<closer>(); }));
    }
    void add(std::weak_ptr<fleet> one) {
        std::lock_guard const guard{mutex_};
        std::erase_if(fleets_, [](auto const& other) { return other.expired(); });
        fleets_.push_back(std::move(one));
    }
    /// Those over this client alone have one in common.
    std::shared_ptr<anchor> single(std::shared_ptr<detail::core> const& node) {
        std::lock_guard const guard{single_mutex_};
        auto found = single_.lock();
        if (!found) single_ = found = std::make_shared<anchor>(fleet::make(std::vector{node}));
        return found;
    }
    void close(std::function<void()> done) noexcept override {
        std::unique_lock guard{mutex_};
        auto const all = std::exchange(fleets_, {});
        guard.unlock();
        auto const open = std::make_shared<std::size_t>(all.size() + 1);
        auto const one_less = [open, done = std::move(done)] {
            if (--*open == 0) done();
        };
        for (auto const& one : all) {
            if (auto const alive = one.lock()) {
                alive->close(one_less);
            } else {
                one_less();
            }
        }
        one_less();
    }

private:
    std::mutex mutex_;
    std::vector<std::weak_ptr<fleet>> fleets_;
    std::mutex single_mutex_;
    std::weak_ptr<anchor> single_;
};

}  // namespace

/// What a node's server pushes to this process.
class fleet::ear final : public redis::listener {
public:
    ear(std::weak_ptr<fleet> of, std::size_t node) noexcept : of_(std::move(of)), node_(node) {}

    void message(std::string_view, std::string_view payload) noexcept override {
        auto const alive = of_.lock();
        if (!alive) return;
        alive->reactor().post([of = of_, node = node_, text = std::string{payload}] {
            if (auto const still = of.lock()) still->heard(node, text);
        });
    }
    void subscribed() noexcept override {}
    void interrupted() noexcept override {}
    void refused(errc reason, std::string_view why) noexcept override {
        if (reason == errc::cancelled) return;
        log(log_level::warning, fmt::format("redlock hears no wake-ups from a node, so those who wait look again by time only: {}", why));
    }

private:
    std::weak_ptr<fleet> of_;
    std::size_t node_;
};

/// Which server a node is, by the number that it gives itself when it starts: two addresses may lead to one.
class fleet::identity final : public redis::operation {
public:
    identity(fleet& of, std::size_t which) noexcept : of_(of), node_(which) {}
    ~identity() { withdraw(); }

    void ask(std::int16_t keys, redis::reactor::clock::time_point deadline) {
        if (is_known() || busy_.exchange(true)) return;
        auto& server = of_.node(node_);
        use_way(server.way());
        slot = server.is_cluster() ? keys : std::int16_t{-1};
        repeatable = true;
        if (!begin(deadline, nullptr)) busy_ = false;
    }
    bool is_known() const noexcept { return known_; }
    std::string run_id;  // under the fleet's lock

private:
    void encode(resp::output& out) override { resp::append_command(out, "INFO", "server"); }
    void complete(reply_view answer) noexcept override try {
        constexpr std::string_view field = "\nrun_id:";
        auto const text = answer.is_error() ? std::string_view{} : answer.text();
        if (auto const at = text.find(field); at != text.npos) {
            auto const rest = text.substr(at + field.size());
            of_.identified(node_, rest.substr(0, rest.find_first_of("\r\n")));
        }
        known_ = true;  // as well as it can be: one that may not be asked for it is taken for another
        busy_ = false;
    } catch (std::exception const&) {
        busy_ = false;
    }
    void fail(errc, std::string_view) noexcept override { busy_ = false; }

    fleet& of_;
    std::size_t node_;
    std::atomic<bool> busy_{false};
    std::atomic<bool> known_{false};
};

// ---- making it

fleet::fleet(std::vector<std::shared_ptr<detail::core>> nodes, std::shared_ptr<detail::core> home, bool owns_nodes,
             std::shared_ptr<detail::io_thread> thread)
    : thread_(std::move(thread)), nodes_(std::move(nodes)), home_(std::move(home)), owns_nodes_(owns_nodes),
      alarm_(engine::alarm_clock::instance()), process_("redlock-" + base::random_id().substr(0, 12)), channels_(prefix() + ":wake:") {}

std::shared_ptr<fleet> fleet::make(std::span<client_options const> nodes) {
    check_count(nodes.size());
    // One thread for all: they are asked together and decide together.
    auto thread = std::make_shared<detail::io_thread>();
    std::vector<std::shared_ptr<detail::core>> cores;
    for (auto const& one : nodes) {
        cores.push_back(detail::core::make(one, detail::home_executor{thread->executor(), {}}));
    }
    check_different(cores);
    auto home = cores.front();
    std::shared_ptr<fleet> made{new fleet{std::move(cores), std::move(home), true, std::move(thread)}};
    closer::of(*made->home_).add(made);
    return made;
}

std::shared_ptr<fleet> fleet::make(std::vector<std::shared_ptr<detail::core>> nodes) {
    check_count(nodes.size());
    for (auto const& one : nodes) one->require_same_process();
    check_different(nodes);
    auto home = nodes.front();
    if (nodes.size() > 1) home = detail::core::make(nodes.front()->options());  // never connects
    std::shared_ptr<fleet> made{new fleet{std::move(nodes), std::move(home), false, nullptr}};
    closer::of(*made->home_).add(made);
    return made;
}

std::shared_ptr<anchor> fleet::over(std::shared_ptr<detail::core> const& node) { return closer::of(*node).single(node); }

fleet::~fleet() {
    if (!same_process()) {
        for (auto& one : identities_) static_cast<void>(one.release());  // in a child of fork() nothing of theirs may be touched
        return;
    }
    identities_.clear();
    for (std::size_t i = 0; i != ears_.size(); ++i) {
        auto& node = *nodes_[i];
        node.home().in_turn([&] { node.way()->listening().remove(redis::channel_kind::plain, channels_ + process_, *ears_[i]); });
    }
    for (auto* const one : spare_) delete one;
    if (owns_nodes_) {
        for (auto const& one : nodes_) one->close();
    } else if (size() > 1) {
        home_->close();
    }
    home_.reset();
    nodes_.clear();
}

bool fleet::has_cluster() const noexcept {
    return std::any_of(nodes_.begin(), nodes_.end(), [](auto const& one) { return one->is_cluster(); });
}

std::string fleet::description() const {
    std::string text;
    for (auto const& one : nodes_) text += (text.empty() ? "" : "; ") + one->description();
    return text;
}

void fleet::require_usable() const { home_->require_same_process(); }

void fleet::require_blocking() const {
    for (auto const& one : nodes_) one->require_blocking_is_allowed();
}

// ---- which server each is

void fleet::identify(std::int16_t slot, redis::reactor::clock::time_point deadline) {
    if (size() == 1) return;
    for (std::size_t i = identities_.size(); i < size(); ++i) identities_.push_back(std::make_unique<identity>(*this, i));
    for (auto const& one : identities_) one->ask(slot, deadline);
}

void fleet::identified(std::size_t node, std::string_view run_id) {
    std::lock_guard const guard{identities_mutex_};
    identities_[node]->run_id = run_id;
    for (std::size_t i = 0; i != size(); ++i) {
        if (i == node || identities_[i]->run_id != run_id) continue;
        sameness_ = fmt::format("{} and {} are the same server (run_id {}), and each node must be a server of its own", nodes_[std::min(i, node)]->description(),
                                nodes_[std::max(i, node)]->description(), run_id);
    }
}

std::string fleet::sameness() const {
    std::lock_guard const guard{identities_mutex_};
    return sameness_;
}

// ---- rooms

std::shared_ptr<room> fleet::room_for(std::vector<std::string> const& keys) {
    std::string key;
    for (auto const& one : keys) key += fmt::format("{} {} ", one.size(), one);
    std::lock_guard const guard{rooms_mutex_};
    auto& known = rooms_[key];
    auto found = known.lock();
    if (!found) {
        found = std::make_shared<room>(shared_from_this(), keys, key, ++last_number_);
        known = found;
        numbers_[found->number()] = found;
    }
    return found;
}

void fleet::forget(room const& gone) noexcept {
    std::lock_guard const guard{rooms_mutex_};
    numbers_.erase(gone.number());
    auto const found = rooms_.find(gone.key());
    if (found != rooms_.end() && found->second.expired()) rooms_.erase(found);
}

// ---- holds

grip& fleet::new_grip() {
    grip* made = nullptr;
    {
        std::lock_guard const guard{spare_mutex_};
        if (!spare_.empty()) {
            made = spare_.back();
            spare_.pop_back();
        }
    }
    if (made == nullptr) made = new grip{size(), alarm_};
    auto index = static_cast<std::uint32_t>(table_.size());
    if (vacant_.empty()) {
        table_.push_back(made);
    } else {
        index = vacant_.back();
        vacant_.pop_back();
        table_[index] = made;
    }
    active_.fetch_add(1, std::memory_order_relaxed);
    made->become(shared_from_this(), index);
    return *made;
}

void fleet::append_random(std::string& to) {
    // A question to the kernel costs as much as a request to a node, so one is for several. Not kept for longer than what is under way
    // is kept anyway: a machine that is copied while it runs must not use it twice.
    if (random_left_ == 0 || reactor().now() - random_since_ > std::chrono::milliseconds{1}) {
        base::random_from_kernel(random_);
        random_left_ = random_.size();
        random_since_ = reactor().now();
    }
    random_left_ -= 2;
    base::append_id(to, random_[random_left_], random_[random_left_ + 1]);
}

void fleet::ended(grip& done) noexcept {
    table_[done.index()] = nullptr;
    vacant_.push_back(done.index());
    if (active_.fetch_sub(1) == 1) {
        if (settling_) {
            std::lock_guard const guard{settle_mutex_};
            settled_.notify_all();
        }
        if (closed_) std::exchange(closed_, nullptr)();
    }
    done.let_go();
}

void fleet::recycle(grip& unused) noexcept {
    {
        std::lock_guard const guard{spare_mutex_};
        if (spare_.size() < home_->options().pool_size) {
            unused.forget_nodes();
            spare_.push_back(&unused);
            return;
        }
    }
    delete &unused;
}

// ---- wake-ups

void fleet::listen() {
    if (!ears_.empty()) return;
    for (std::size_t i = 0; i != size(); ++i) {
        ears_.push_back(std::make_shared<ear>(weak_from_this(), i));
        nodes_[i]->home().post([core = nodes_[i].get(), alive = weak_from_this(), channel = channels_ + process_, hears = ears_[i]] {
            if (alive.lock()) core->way()->listening().add(redis::channel_kind::plain, channel, *hears);
        });
    }
}

/// `w <token> <waiter> ...`: these wait for it. `f <room> <token> <waiter> ...`: it is free here, and these come behind you.
void fleet::heard(std::size_t node, std::string_view payload) {
    auto words = words_of(payload);
    if (words.size() >= 3 && words[0] == "w") {
        auto const token = std::move(words[1]);
        words.erase(words.begin(), words.begin() + 2);
        wanted(token, std::move(words));
    } else if (words.size() >= 3 && words[0] == "f") {
        auto const number = std::move(words[1]);
        auto const token = std::move(words[2]);
        words.erase(words.begin(), words.begin() + 3);
        freed(node, number, token, std::move(words));
    }
}

void fleet::wanted(std::string_view token, std::vector<std::string> waiters) {
    auto const dot = token.find('.');
    auto const end = token.find('.', dot + 1);
    if (dot == std::string_view::npos || end == std::string_view::npos) return;
    std::uint32_t index = 0;
    std::from_chars(token.data() + dot + 1, token.data() + end, index, 16);
    auto* const held = index < table_.size() ? table_[index] : nullptr;
    if (held == nullptr || held->token() != token) return pass_on(token, waiters);  // it went in between
    held->wanted(std::move(waiters));
}

void fleet::freed(std::size_t node, std::string_view number, std::string_view token, std::vector<std::string> waiters) {
    std::uint64_t which = 0;
    std::from_chars(number.data(), number.data() + number.size(), which);
    std::shared_ptr<room> found;
    {
        std::lock_guard const guard{rooms_mutex_};
        auto const known = numbers_.find(which);
        if (known != numbers_.end()) found = known->second.lock();
    }
    if (found) return found->freed(node, token, std::move(waiters));
    pass_on(token, waiters);
}

void fleet::pass_on(std::string_view token, std::vector<std::string> const& waiters) {
    if (waiters.empty()) return;
    auto const& first = waiters.front();
    auto const slash = first.find('/');
    auto const second = first.find('/', slash + 1);
    if (slash == std::string::npos || second == std::string::npos) return;
    auto text = fmt::format("f {} {}", first.substr(slash + 1, second - slash - 1), token);
    for (std::size_t i = 1; i != waiters.size(); ++i) text += " " + waiters[i];
    auto const channel = channels_ + first.substr(0, slash);
    for (auto const& node : nodes_) {
        redis::command_terms const terms{.deadline = reactor().now() + settling_time, .errors_are_replies = true};
        start(redis::run(node->way(), terms, "PUBLISH", channel, text), [](std::exception_ptr, std::optional<reply>) {});
    }
}

// ---- the end

void fleet::close(std::function<void()> done) noexcept {
    closing_ = true;
    std::vector<std::shared_ptr<room>> rooms;
    {
        std::lock_guard const guard{rooms_mutex_};
        for (auto const& [key, one] : rooms_) {
            if (auto found = one.lock()) rooms.push_back(std::move(found));
        }
    }
    for (auto const& one : rooms) one->close();
    closed_ = std::move(done);
    for (std::size_t i = 0; i != table_.size(); ++i) {
        if (table_[i] != nullptr) table_[i]->close();
    }
    if (active_ == 0 && closed_) std::exchange(closed_, nullptr)();
}

void fleet::let_settle() noexcept {
    if (active_ == 0) return;
    try {
        require_blocking();
    } catch (error const&) {
        return;
    }
    settling_ = true;
    std::unique_lock guard{settle_mutex_};
    settled_.wait_for(guard, settling_time, [this] { return active_ == 0; });
    guard.unlock();
    if (active_ == 0) return;
    // Nodes that do not answer. What is left there ends with its ttl.
    reactor().in_turn([this] {
        closing_ = true;
        for (std::size_t i = 0; i != table_.size(); ++i) {
            if (table_[i] != nullptr) table_[i]->drop();
        }
    });
}

anchor::~anchor() {
    if (of) of->let_settle();
}

}  // namespace lockstep::quorum
