// A process that schedules jobs and runs them as it is told: what the tests of the dashboard look at.
//   job_puppet <url> <client's name>
// Answers each line of its input with one of its own; words are percent-encoded:
//   work NAME TYPE                       runs such jobs from now on. A payload that begins with "bad" fails until it is mended, one that begins with "slow" takes
//                                        until it is let go, any other is done at once
//   mend | let                           "ok"
//   add NAME TYPE PAYLOAD [ATTEMPTS]     "ok <id>"
//   many NAME TYPE COUNT                 "ok": so many, with their numbers as payloads
//   flow NAME NODE...                    "ok <id of each>"; a node is <its name>:<type>:<payload>:<parent>,<parent>...
//   cron NAME ID TYPE EXPRESSION         "ok"
//   pause NAME ID                        "ok": that schedule
// or with "failed: <why>". The end of its input ends it, in order.
#include "support/puppet_lines.hpp"

#include <lockstep/client.hpp>
#include <lockstep/job_client.hpp>
#include <lockstep/job_worker.hpp>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <iostream>
#include <memory>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>

namespace {

using lockstep::test::decoded;
using text = std::string;
using namespace std::chrono_literals;

class puppet {
public:
    puppet(char const* url, char const* name) : client_({.url = url, .name = name}) {}

    text obey(text const& line) {
        std::istringstream words{line};
        text order;
        words >> order;
        std::vector<text> given;
        for (text word; words >> word;) given.push_back(decoded(word));
        if (order == "mend" || order == "let") {
            std::lock_guard const guard{mutex_};
            (order == "mend" ? is_mended_ : is_let_go_) = true;
            changed_.notify_all();
            return "ok";
        }
        lockstep::job_client jobs{client_, given.at(0)};
        if (order == "work") {
            work(given.at(0), given.at(1));
        } else if (order == "add") {
            auto const attempts = given.size() > 3 ? std::stoi(given[3]) : 1;
            return "ok " + jobs.schedule(given.at(1), given.at(2), {.attempts = attempts, .backoff = 1ms}).id;
        } else if (order == "many") {
            std::vector<text> all;
            for (int i = 0; i < std::stoi(given.at(2)); ++i) all.push_back(std::to_string(i));
            jobs.schedule_many<text>(given.at(1), all);
        } else if (order == "flow") {
            return add_flow(jobs, given);
        } else if (order == "cron") {
            jobs.cron(given.at(1), given.at(2), text{"all"}, {.expression = given.at(3)});
        } else if (order == "pause") {
            jobs.pause_cron(given.at(1));
        } else {
            throw std::runtime_error{"there is no order " + order};
        }
        return "ok";
    }

private:
    static text add_flow(lockstep::job_client& jobs, std::vector<text> const& given) {
        lockstep::job_flow flow;
        std::vector<text> names;
        for (std::size_t i = 1; i < given.size(); ++i) {
            std::istringstream parts{given[i]};
            text name, type, payload, parent;
            std::getline(parts, name, ':');
            std::getline(parts, type, ':');
            std::getline(parts, payload, ':');
            flow.add(name, type, payload, {.attempts = 1});
            while (std::getline(parts, parent, ',')) flow.after(name, parent);
            names.push_back(name);
        }
        auto const ids = jobs.add_flow(flow);
        text said = "ok";
        for (auto const& name : names) said += ' ' + ids.at(name);
        return said;
    }
    void work(text const& name, text const& type) {
        auto made = std::make_unique<lockstep::job_worker>(client_, name);
        made->handle<text>(type, [this](lockstep::job_context& job, text const& what) { return run(job, what); });
        made->start();
        workers_.push_back(std::move(made));
    }
    text run(lockstep::job_context& job, text const& what) {
        std::unique_lock guard{mutex_};
        if (what.starts_with("bad") && !is_mended_) throw std::runtime_error{"could not do <b>" + what + "</b>"};
        if (what.starts_with("slow")) {
            job.progress("half of " + what);
            changed_.wait(guard, job.stop_token(), [this] { return is_let_go_; });
        }
        return "done " + what;
    }

    lockstep::client client_;
    std::mutex mutex_;
    std::condition_variable_any changed_;
    bool is_mended_ = false;
    bool is_let_go_ = false;
    std::vector<std::unique_ptr<lockstep::job_worker>> workers_;
};

}  // namespace

int main(int count, char** arguments) try {
    if (count != 3) return 2;
    puppet obedient{arguments[1], arguments[2]};
    lockstep::test::answer_lines([&](text const& line) { return obedient.obey(line); });
    return 0;
} catch (std::exception const& failure) {
    std::cout << "failed: " << failure.what() << std::endl;
    return 1;
}
