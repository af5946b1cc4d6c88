#include <lockstep/request.hpp>

#include "resp/encoder.hpp"

#include <lockstep/error.hpp>

namespace lockstep {

std::string detail::encode_command(std::span<argument const> arguments) {
    resp::output bytes;
    resp::append_list(bytes, arguments, &argument::view);
    return std::string{bytes.view()};
}

std::chrono::milliseconds detail::checked_time(std::chrono::milliseconds time) {
    if (time.count() < 0) throw invalid_argument_error("a request's time must be 0 (the client's command_timeout) or longer");
    return time;
}

request request::from(std::span<detail::argument const> arguments) {
    if (arguments.empty()) throw invalid_argument_error("a command needs at least its name");
    request made;
    made.encoded_ = detail::encode_command(arguments);
    return made;
}

request request::from(std::span<std::string_view const> arguments) {
    std::vector<detail::argument> const list{arguments.begin(), arguments.end()};
    return from(std::span<detail::argument const>{list});
}

}  // namespace lockstep
