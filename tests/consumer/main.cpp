#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

#include <cstdio>
#include <string>

int main() {
    std::string heard;
    lockstep::set_log_hook([&](lockstep::log_level, std::string_view message) { heard = message; });
    lockstep::log(lockstep::log_level::info, "hello");
    try {
        throw lockstep::timeout_error("as expected");
    } catch (lockstep::error const& error) {
        if (error.reason() != lockstep::errc::timeout || heard != "hello") return 1;
    }
    std::puts("ok");
}
