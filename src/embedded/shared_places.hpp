#pragma once

// Where the shared server lives. Every program of a user must come to the same answer, so there are few inputs.

#include <lockstep/embedded_server.hpp>

#include <string>

namespace lockstep::embedded {

struct shared_place {
    std::string directory;
    bool given = false;  // by option or variable: then the data stays inside it

    std::string lock() const { return directory + "/lock"; }
    std::string socket() const;
    std::string log() const { return directory + "/server.log"; }
    std::string config() const { return directory + "/server.conf"; }
    std::string data_inside() const { return directory + "/data"; }
    std::string script() const { return directory + "/supervise.sh"; }
    std::string data_record() const {
        return directory + "/data_directory";
    }  // where the running server keeps its data
};

// Makes nothing. Throws invalid_argument_error for a directory that is relative or too long.
shared_place find_shared_place(shared_server_options const& options);

// Where a server started at `place` keeps its data; made where missing. In a home directory where there is one that can be
// written, and there one per host name: homes are shared between machines. Else, and where the place was given, inside it.
std::string make_data_directory(shared_place const& place);
// The same without making anything: the one in a home if it is there.
std::string likely_data_directory(shared_place const& place);

// In a data directory: its lock, and the socket of the server that holds it.
inline std::string data_lock_in(std::string const& data) { return data + "/lockstep.lock"; }
inline std::string socket_record_in(std::string const& data) { return data + "/socket"; }

// How long unused: option, LOCKSTEP_EMBEDDED_IDLE, default. 0 means for ever.
std::chrono::milliseconds idle_time(shared_server_options const& options);

}  // namespace lockstep::embedded
