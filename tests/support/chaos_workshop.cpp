#include "chaos_workshop.hpp"

#include "chaos_guardian.hpp"
#include "chaos_names.hpp"

#include <lockstep/consumer.hpp>
#include <lockstep/error.hpp>
#include <lockstep/job_client.hpp>

#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>

namespace lockstep::chaos {

using namespace std::chrono_literals;

workshop::workshop(client& by, std::string const& referee, std::string const& who, std::uint64_t seed)
    : referee_{referee}, who_{who}, seed_{seed}, worker_{by, jobs_name, job_worker_options_of(ttl_of(jobs_name))} {
    auto const on_thread = [this](job_context& job, std::string const& value) { return work(job, value); };
    worker_.handle<std::string>(hand_type, on_thread);
    worker_.handle<std::string>(single_type, on_thread);
    worker_.handle<std::string>(mind_type, [this](job_context& job, std::string const& value) { return think(*this, job, value); });
    worker_.handle<std::string>(tick_type, [this](job_context& job, std::string const& schedule) {
        auto const self = borrow();
        self->about().n = job.due().time_since_epoch() / 1ms;
        self->report("fired", schedule + " " + job.id());
    });
    put_schedule(by);
    worker_.start();
}

/// The same again changes nothing.
void workshop::put_schedule(client& by) {
    try {
        auto const name = schedule_name(boot_ns());
        job_client{by, jobs_name}.cron(name, tick_type, name, {.expression = "* * * * * *", .missed = missed_runs::all});
    } catch (error const&) {
        // Another one does it.
    }
}

workshop::colleague workshop::borrow() {
    std::lock_guard const guard{mutex_};
    if (idle_.empty()) {
        ++made_;
        idle_.push_back(std::make_unique<actor>(referee_, who_ + ".j" + std::to_string(made_), seed_ + made_));
    }
    auto* const one = idle_.back().release();
    idle_.pop_back();
    one->turn_to(jobs_name);
    return {one, [this](actor* back) {
                std::lock_guard const again{mutex_};
                idle_.emplace_back(back);
            }};
}

void workshop::begin(actor& self, job_context const& job, std::string const& value) {
    self.about().n = job.deliveries();
    self.report("begun", value);
}

/// Its end as the job's plan says.
std::string workshop::end(actor& self, job_context const& job, std::string const& value) {
    auto const plan = job_plan::of(value);
    bool const rejects = plan.ends == job_plan::fate::rejects;
    if (rejects || plan.ends == job_plan::fate::throws || job.attempt() <= plan.throws) {
        self.report("threw", value);
        if (rejects) throw reject{"it does not like it"};
        throw std::runtime_error{"it does not want to"};
    }
    std::string result;
    {
        std::lock_guard const guard{mutex_};
        result = who_ + "/" + std::to_string(++results_);
    }
    self.report("returned", value + " " + result);
    return result;
}

std::string workshop::work(job_context& job, std::string const& value) {
    auto const self = borrow();
    begin(*self, job, value);
    // Single ones take longer: others of their name come meanwhile.
    auto const times = job_plan::of(value).single.empty() ? 1 : 1 + self->below(12);
    for (std::uint64_t i = 0; i < times && job.is_valid(); ++i) guardian{*self}.guard(job);
    return end(*self, job, value);
}

task<std::string> workshop::think(workshop& shop, job_context& job, std::string value) {
    auto const self = shop.borrow();
    shop.begin(*self, job, value);
    auto time = boot_ns();
    if (job.is_valid()) self->report_at(time, "sure");
    try {
        auto telling = job.async_progress("thinking");
        co_await std::move(telling);
    } catch (error const&) {
        // It is not its own any more, or nobody heard it.
    }
    time = boot_ns();
    if (job.is_valid()) self->report_at(time, "sure");
    co_return shop.end(*self, job, value);
}

}  // namespace lockstep::chaos
