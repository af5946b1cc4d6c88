#include "clock_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <system_error>

namespace lockstep::test {
namespace {

constexpr auto size = 2 * sizeof(std::int64_t);  // as in clock_shim.c

}  // namespace

clock_file::clock_file(std::chrono::microseconds offset) {
    auto const file = ::open(path().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ::ftruncate(file, size) != 0) throw std::system_error{errno, std::generic_category(), path()};
    auto* const mapped = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    auto const reason = errno;
    ::close(file);
    if (mapped == MAP_FAILED) throw std::system_error{reason, std::generic_category(), "mmap"};
    mapped_ = static_cast<std::int64_t*>(mapped);
    set_offset(offset);
}

clock_file::~clock_file() { ::munmap(mapped_, size); }

void clock_file::set_offset(std::chrono::microseconds offset) { std::atomic_ref{* mapped_} = offset.count(); }

void clock_file::step(std::chrono::microseconds by) { std::atomic_ref{* mapped_} += by.count(); }

std::chrono::microseconds clock_file::offset() const {
    return std::chrono::microseconds{std::atomic_ref{*mapped_}.load()};
}

void clock_file::stop() {
    using namespace std::chrono;
    auto const now = floor<seconds>(system_clock::now());
    std::atomic_ref{mapped_[1]} = duration_cast<microseconds>(now.time_since_epoch()).count();
}

}  // namespace lockstep::test
