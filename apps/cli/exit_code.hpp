#pragma once

// What the program returns. The numbers are those of <sysexits.h> where it has a word for it, as with flock(1), so that they rarely meet
// those of the commands that `lockstep run` runs and passes on. The man page has this table too; a test compares.

namespace lockstep::cli {

enum class exit_code : int {
    ok = 0,
    no = 1,               // not obtained, not set, not in time, nothing found (as with grep); `run -E` chooses another
    usage = 64,           // the command line, or a name or a number that is not allowed
    unavailable = 69,     // no server in the time allowed, or its answer is missing
    internal = 70,        // a bug of ours
    system = 71,          // the operating system refused: no process, no file
    lost = 75,            // the lease ended before the command did, or the barrier broke
    server = 76,          // the server answered with an error
    denied = 77,          // wrong user or password, or the user's rights do not reach
    unsuitable = 78,      // a server that can't be used as it is configured
    not_executable = 126, // as shells have it, from `run`
    not_found = 127,      // so too
    signalled = 128,      // plus the signal's number
};

}  // namespace lockstep::cli
