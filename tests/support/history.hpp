// What happened in a run, as its witnesses saw it: one JSON object per line, so that any tool can read it.
//
//     {"t":17,"who":"w2.1.0","what":"granted","name":"mutex-0","fence":1700000000000000}
//
// t is CLOCK_BOOTTIME in nanoseconds, one clock for all processes of the machine. who is a worker's thread (worker.incarnation.thread),
// "nemesis" or "end". name begins with the kind of thing it is. What the kinds of events mean:
//
//   ask       before a hold is asked for                     none, failed  it was not obtained (note: why)
//   granted   after it was: fence, n permits, note the mode   sure          t was read before the lease was found valid
//   adopted   the same of one that somebody detached          untold        lost, and its stop token did not trip
//   change    before the mode is changed                      changed       after it was: fence, note the mode; none: it was not
//   ended     the holder is through with it (note: how)       detached      the same, and whoever adopts it has it (note: mode|token)
//   access    the referee's: a holder came with its fence; n is 1 if it was let in, 0 if a larger one had been there
//   deed      the nemesis': note says which                   killed        who has been
//   left      found in Redis in the end (note: what)        elected       of the changes found there, in their order: fence is the term
// of events:
//   set, set_done or unknown; wait, then woken, none or failed
//   settled    being killed from here on, it takes no signal of that wait along; heard: perhaps it does, but it heard from the server
// of barriers:
//   arrive, then passed, broken, gave_up (in vain), failed (it did not arrive) or unknown; settled: it is not counted any more
//   completed  by the last to arrive, before anybody goes on
// of queues; note is the value, no two are the same, and its key stands behind an @:
//   enqueue, then enqueued (n is 1 if it is new, 0 if it was left out because of its key), refused (there is no room) or unknown
//   take, then processed (n: which delivery), none or failed; sure as above; then ack and acked, lost (it is not its own any more) or unknown,
//   or nacked, dropped or late (not its own any more, and not done). parted: all workers have ended
// of streams: add, then added (fence and n are its id) or unknown; processed when the handler begins, handled when it ends well
// of jobs; note is the value (chaos_job.hpp) and, behind a space, what else there is:
//   schedule, then scheduled (n is 1 if it is new, 0 if it was left out; its id) or unknown; cancel, then cancelled, requeue, then requeued, moved: n is 1 if it was
//   begun when its handler begins (n: which delivery), sure as above, then returned (its result) or threw
//   ended: somebody waited for its end, final: found in the end (n: its state, as in job_state; its result)
//   ever: how many were added and have ended, as the server has counted; fired: a job of a schedule (n: when it was due, ms; note: the
//   schedule, and its id)
// of limits: decide, then allowed (n: how much) or refused
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::chaos {

struct event {
    std::int64_t t = 0;
    std::string who{};
    std::string what{};
    std::string name{};
    std::uint64_t fence = 0;
    std::int64_t n = 0;
    std::string note{};

    bool operator==(event const&) const = default;
};

using history = std::vector<event>;

/// Without the end of line. What is 0 or empty is left out.
std::string to_json(event const& one);
/// Flat objects of strings and integers with the members above; nothing for any other text.
std::optional<event> from_json(std::string_view line);

/// In order of time. Throws std::invalid_argument that names the line.
history parse_history(std::string_view lines);

std::int64_t boot_ns();

}  // namespace lockstep::chaos
