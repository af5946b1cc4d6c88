#pragma once

/// What a server's error reply means for the request it answers: one place that knows the words, without sockets.
///
/// Every verdict but `deliver` says that the command did not run, so it may be sent again. The first word counts
/// ("BUSY" is not "BUSYGROUP"). A script of the user's may have run and return any word it likes, so what must not run twice is sent again
/// only where the rest is the server's own wording too. To teach it a new word, add it to the table in verdict.cpp and to the test.

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::redis {

enum class verdict {
    deliver,      ///< the caller's business: WRONGTYPE, OOM, MISCONF, NOPERM, EXECABORT, NOREPLICAS, UNBLOCKED, ERR ...
    retry_later,  ///< wait a little, then the same again: LOADING, BUSY, TRYAGAIN, MASTERDOWN, CLUSTERDOWN
    moved,        ///< the slot lives elsewhere now: send it there, and refresh the map
    ask,          ///< the slot is on its way: send it there once, after ASKING
    noscript,     ///< the server does not know the script: send its text
    read_only,    ///< this is not the master (any more): find the master
    log_in,       ///< the connection is not logged in (any more): NOAUTH
};

struct judgement {
    verdict what = verdict::deliver;
    std::uint16_t slot = 0;  ///< moved and ask: the slot,
    std::string host{};      ///< its host (IPv6 without brackets; empty: the host that answered),
    std::uint16_t port = 0;  ///< and its port

    friend bool operator==(judgement const&, judgement const&) = default;
};

/// `text` is the error reply without its leading `-`. A MOVED or ASK that can't be read is delivered.
judgement judge(std::string_view text);

/// Refused just now, while the same may be taken later: also OOM, MISCONF and NOREPLICAS, which are the caller's business.
bool may_pass(std::string_view text);

/// Is it worded as the server itself does it, so that no script has returned it?
bool is_servers_own(std::string_view text) noexcept;

/// For the keep-alive PING: a server that refuses (MISCONF, BUSY, LOADING, MASTERDOWN, NOPERM ...) is alive. Only NOAUTH
/// means that the connection is of no use any more.
bool is_alive_answer(std::string_view text) noexcept;

}  // namespace lockstep::redis
