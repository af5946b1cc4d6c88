#include "lease/pause.hpp"
#include "scripts/all.hpp"
#include "state/breaker_state.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

// Which calls a circuit breaker lets through while it is half open, and what became of them: probes, by a lease of the server, or by its own
// count, with leases too, where the server is silent.

namespace lockstep::detail {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

task<breaker_pass> breaker_state::admit(std::shared_ptr<breaker_state> self) {
    engine::pause turn{self->object_.owner(), 0ms};
    co_await turn;
    self->begin();
    auto judged = self->judge();
    if (judged.what == verdict::look) {
        auto looking = look(self);
        co_await std::move(looking);
        judged = self->judge();
    }
    if (judged.what == verdict::go) co_return std::move(judged.pass);
    if (judged.what != verdict::probe) self->refuse(judged);

    struct asking_count {
        breaker_state& of;
        explicit asking_count(breaker_state& one) : of(one) {
            std::lock_guard const guard{of.mutex_};
            ++of.asking_;
        }
        ~asking_count() {
            std::lock_guard const guard{of.mutex_};
            --of.asking_;
        }
    };
    asking_count const counted{*self};
    std::string probe;
    {
        std::lock_guard const guard{self->mutex_};
        probe = fmt::format("{}.{}", self->session_, ++self->probes_made_);
    }
    // Until it is known what became of it: one that nobody makes must not keep its place at the server.
    struct asked_for {
        std::shared_ptr<breaker_state> of;
        std::string const& probe;
        bool is_open = true;
        ~asked_for() {
            if (is_open) of->settle(probe, breaker_outcome::none);
        }
    };
    auto const asked = clock::now();
    try {
        asked_for wish{self, probe};
        std::string_view const keys[] = {self->object_.key()};
        argument const words[] = {self->rules_, probe};
        auto asking = self->object_.run(scripts::breaker_probe, keys, words, {.within = self->how_.server_timeout});
        auto const said = co_await std::move(asking);
        wish.is_open = false;
        self->adopt_reply(said, asked);
        if (said[5].as<std::int64_t>() == 1) co_return breaker_pass{.generation = self->gate_.load() >> 1U, .probe = std::move(probe)};
        std::lock_guard const guard{self->mutex_};
        self->no_probe_before_ = clock::now() + std::min<clock::duration>(milliseconds{said[6].as<std::int64_t>()}, self->how_.report_interval);
    } catch (error const& problem) {
        if (!is_silence(problem)) throw;
        self->go_local(problem);
    }
    judged = self->judge();
    if (judged.what == verdict::go) co_return std::move(judged.pass);
    self->refuse(judged);
}

task<void> breaker_state::tell_result(std::shared_ptr<breaker_state> self, std::string probe, std::string_view how) {
    engine::pause turn{self->object_.owner(), 0ms};
    co_await turn;
    auto const asked = clock::now();
    std::string_view const keys[] = {self->object_.key()};
    argument const words[] = {self->rules_, probe, how};
    // It is worth trying for as long as the lease lives.
    auto telling = self->object_.run(scripts::breaker_result, keys, words, {.within = self->how_.probe_lease});
    auto const said = co_await std::move(telling);
    self->adopt_reply(said, asked);
}

void breaker_state::settle(std::string const& probe, breaker_outcome how) noexcept {
    if (!object_.owner()->same_process()) return;
    if (probe.starts_with(local_probe)) return settle_local(probe, how);
    {
        std::lock_guard const guard{mutex_};
        no_probe_before_ = {};
    }
    std::string_view const word = how == breaker_outcome::ok ? "ok" : how == breaker_outcome::failed ? "failed" : "none";
    try {
        start(tell_result(shared_from_this(), probe, word), [](std::exception_ptr) {});
    } catch (...) {
        // Its lease ends by itself.
    }
}

void breaker_state::settle_local(std::string const& probe, breaker_outcome how) noexcept {
    object_.owner()->home().post([self = shared_from_this(), probe, how] {
        circuit_status before, now;
        {
            std::lock_guard const guard{self->mutex_};
            before = self->status_here();
            auto const found = self->local_probes_.find(probe);
            if (found == self->local_probes_.end()) return;
            bool const is_late = found->second <= clock::now();
            self->local_probes_.erase(found);
            auto& known = self->local_;
            if (is_late || !self->is_local_ || known.state != circuit::half_open || how == breaker_outcome::none) return;
            if (how == breaker_outcome::failed) {
                known.state = circuit::open;
                known.reopens = clock::now() + self->how_.recovery_timeout;
            } else if (++self->local_successes_ >= self->how_.successes_to_close) {
                known.state = circuit::closed;
            } else {
                return;
            }
            self->window_.clear();
            now = self->follow(before);
        }
        self->tell(before, now);
    });
}

}  // namespace lockstep::detail
