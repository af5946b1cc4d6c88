// A private directory for one test, gone when the test is.
#pragma once

#include <filesystem>
#include <string>

namespace lockstep::test {

class scratch_dir {
public:
    scratch_dir();
    ~scratch_dir();
    scratch_dir(scratch_dir const&) = delete;
    scratch_dir& operator=(scratch_dir const&) = delete;

    // Short (a dozen characters or so): unix socket paths inside it must stay within 107 bytes.
    [[nodiscard]] std::filesystem::path const& path() const { return path_; }
    [[nodiscard]] std::string file(std::string const& name) const { return (path_ / name).string(); }

private:
    std::filesystem::path path_;
};

}  // namespace lockstep::test
