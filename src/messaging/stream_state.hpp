#pragma once

// Behind a `stream`: its keys, the sessions of its adds, and connections for reads that wait.

#include "core/keyed.hpp"
#include "core/session.hpp"
#include "messaging/add_sessions.hpp"

#include <lockstep/stream.hpp>

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::detail {

struct stream_state {
    stream_state(keyed of, stream_options how) : at(std::move(of)), options(how) {}

    keyed at;
    stream_options options;
    add_sessions adds;

    std::mutex idle_mutex;
    std::vector<session> idle;  ///< connections that no read uses
};

/// Entries as XRANGE returns them. An entry that is gone has no fields.
std::vector<stream_entry> read_entries(reply_view list);
stream_fields read_fields(reply_view fields);
/// What XREAD and XREADGROUP return for one stream; null: nothing came.
std::vector<stream_entry> read_of_one(reply_view answer);

/// Throws `invalid_argument_error`: "stream 'x': <what>".
void require(keyed const& at, bool holds, std::string_view what);
void require_consumer_name(keyed const& at, std::string_view what, std::string_view name);
bool is_stream_id(std::string_view id) noexcept;  ///< <number> or <number>-<number>

task<std::vector<std::string>> add_to_stream(std::shared_ptr<stream_state> self, std::vector<stream_fields> entries, std::string id);
/// True: made now.
task<bool> create_group(keyed at, std::string group, std::string start);

}  // namespace lockstep::detail
