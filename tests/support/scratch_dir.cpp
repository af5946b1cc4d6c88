#include "scratch_dir.hpp"

#include <cerrno>
#include <cstdlib>
#include <system_error>

namespace lockstep::test {

namespace {

// A long TMPDIR would push socket paths over their limit: better another place than a bind() that fails.
std::string base_directory() {
    constexpr std::size_t longest = 60;
    auto const* const wanted = std::getenv("TMPDIR");
    if (wanted != nullptr && *wanted == '/' && std::string{wanted}.size() <= longest) return wanted;
    return "/tmp";
}

}  // namespace

scratch_dir::scratch_dir() {
    auto name = base_directory() + "/ls-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::system_error{errno, std::generic_category(), "mkdtemp " + name};
    path_ = name;
}

scratch_dir::~scratch_dir() {
    std::error_code ignored;  // a server that is just dying may still create a file: not worth failing a test for
    std::filesystem::remove_all(path_, ignored);
}

}  // namespace lockstep::test
