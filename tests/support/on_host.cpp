#include "on_host.hpp"

#include <sys/utsname.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

namespace lockstep::test {
namespace {

thread_local std::string pretended;

}  // namespace

on_host::on_host(std::string name) { pretended = std::move(name); }
on_host::~on_host() { pretended.clear(); }

}  // namespace lockstep::test

// In the place of the C library's, in programs that use this. Not declared by <unistd.h> here: with _FORTIFY_SOURCE that one has a body.
extern "C" int gethostname(char* to, std::size_t size) noexcept {
    std::string name = lockstep::test::pretended;
    if (utsname system{}; name.empty() && ::uname(&system) == 0) name = system.nodename;
    if (size == 0) return -1;
    auto const length = std::min(name.size(), size - 1);
    std::copy_n(name.data(), length, to);
    to[length] = '\0';
    return 0;
}
