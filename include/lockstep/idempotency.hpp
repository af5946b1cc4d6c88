#pragma once

/// `idempotency`: a record of what was done, so that what is delivered twice is done once.
///
///     lockstep::idempotency charged{client, "charged"};
///     charged.run(what.id, [&] { charge(card, amount); });      // false: it was done before
///
/// `run` asks whether it may, runs `work`, and records that it was done; the record stays for `retention`. While one is at it, others who come with the
/// same id get `busy_error`; thrown by a handler of a consumer, a queue worker or a job worker, it has the work tried again later, which counts for nothing.
/// What throws is forgotten, and may be done again at once.
///
/// The right to do it is leased, and renewed by the client while `work` runs, however long that takes. So `lease` may be short: it is how long others wait when
/// the process dies. Keep it below the lease of the jobs or items that it guards, so that whoever takes those over does not find it busy.
///
/// Not exactly once: a process that dies between the end of `work` and the record leaves it undone in the books, and when `lease` is over it is done
/// again. So is the work of a process that could not renew its lease for that long. Where `work` writes to a database, write the id there in the same transaction instead; this is for what has no transactions.
///
/// Cancelled while `work` runs, it ends as `work` does: done is recorded, and what throws may be done again. Either is told to the server before it ends.
///
/// Failure: `busy_error`; what `work` throws; and what every request throws: before `work` it did not run, after it (`unavailable_error` and so on from the
/// recording) it ran but may be done again. Threads: everything may be called from any thread.

#include <lockstep/client.hpp>
#include <lockstep/error.hpp>
#include <lockstep/task.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace lockstep {

namespace detail {
struct idempotency_state;
}

/// Somebody else is doing just that.
class busy_error : public timeout_error {
public:
    using timeout_error::timeout_error;
};

struct idempotency_options {
    std::chrono::milliseconds retention{std::chrono::hours{24}};  ///< how long what was done is remembered
    std::chrono::milliseconds lease{15'000};                      ///< how long nobody else may do it when its process has died; renewed while `work` runs
};

class idempotency {
public:
    idempotency(client& by, std::string_view name, idempotency_options options = {});

    /// True: it was done now. False: it had been done.
    bool run(std::string_view id, std::function<void()> const& work);
    task<bool> async_run(std::string_view id, std::function<task<void>()> work);

    bool was_done(std::string_view id) const;
    task<bool> async_was_done(std::string_view id) const;
    /// So that it may be done again. False: it was not done.
    bool forget(std::string_view id);
    task<bool> async_forget(std::string_view id);

private:
    std::shared_ptr<detail::idempotency_state> state_;
};

}  // namespace lockstep
