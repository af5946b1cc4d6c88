#pragma once

#include "files.hpp"

#include <string>

namespace lockstep::embedded {

// A private directory (0700) in $TMPDIR or, where a socket's path would get too long or that can't be used, in /tmp.
//
// It holds a lock file, locked by its owner and by the server that inherits the descriptor. Making a directory first removes
// those of this user whose lock nobody holds: their owners were killed.
class temporary_directory {
public:
    temporary_directory();
    ~temporary_directory() { remove(); }
    temporary_directory(temporary_directory const&) = delete;
    temporary_directory& operator=(temporary_directory const&) = delete;

    std::string const& path() const noexcept { return path_; }
    int lock() const noexcept { return lock_.get(); }
    void remove() noexcept;

private:
    std::string path_;
    file_lock lock_;
};

}  // namespace lockstep::embedded
