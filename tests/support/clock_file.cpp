#include "clock_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <system_error>

namespace lockstep::test {

clock_file::clock_file(std::chrono::milliseconds offset) {
    auto const file = ::open(path().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ::ftruncate(file, sizeof *mapped_) != 0)
        throw std::system_error{errno, std::generic_category(), path()};
    auto* const mapped = ::mmap(nullptr, sizeof *mapped_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    auto const reason = errno;
    ::close(file);
    if (mapped == MAP_FAILED) throw std::system_error{reason, std::generic_category(), "mmap"};
    mapped_ = static_cast<std::int64_t*>(mapped);
    set_offset(offset);
}

clock_file::~clock_file() { ::munmap(mapped_, sizeof *mapped_); }

void clock_file::set_offset(std::chrono::milliseconds offset) { std::atomic_ref{* mapped_} = offset.count(); }

void clock_file::step(std::chrono::milliseconds by) { std::atomic_ref{* mapped_} += by.count(); }

std::chrono::milliseconds clock_file::offset() const {
    return std::chrono::milliseconds{std::atomic_ref{*mapped_}.load()};
}

}  // namespace lockstep::test
