#include "raw_client.hpp"

#include <stdexcept>

namespace lockstep::test {

raw_client::raw_client(endpoint const& to, std::chrono::milliseconds timeout) : stream_{open_stream(to, timeout)} {}

reply raw_client::command(std::vector<std::string> const& arguments) {
    send(arguments);
    return read();
}

reply raw_client::must(std::vector<std::string> const& arguments) {
    auto answer = command(arguments);
    if (answer.is_error()) throw std::runtime_error{arguments.front() + ": " + answer.text};
    return answer;
}

void raw_client::send(std::vector<std::string> const& arguments) {
    auto request = "*" + std::to_string(arguments.size()) + "\r\n";
    for (auto const& argument : arguments)
        request += "$" + std::to_string(argument.size()) + "\r\n" + argument + "\r\n";
    stream_->write_all(request);
}

reply raw_client::read() {
    auto const line = read_until_line_end();
    if (line.empty()) throw std::runtime_error{"an empty line is no reply"};
    auto const rest = line.substr(1);
    reply value;
    switch (line.front()) {
        case '+': value = {.type = reply::kind::status, .text = rest}; break;
        case '-': value = {.type = reply::kind::error, .text = rest}; break;
        case ':': value = {.type = reply::kind::integer, .integer = std::stoll(rest)}; break;
        case '$':
            if (rest == "-1") break;
            value = {.type = reply::kind::bulk, .text = read_exactly(std::stoull(rest) + 2)};
            value.text.resize(value.text.size() - 2);
            break;
        case '*':
            if (rest == "-1") break;
            value.type = reply::kind::array;
            for (auto count = std::stoll(rest); count > 0; --count) value.elements.push_back(read());
            break;
        default: throw std::runtime_error{"not RESP2: " + line};
    }
    return value;
}

std::string raw_client::read_until_line_end() {
    while (true) {
        if (auto const end = buffer_.find("\r\n", position_); end != std::string::npos) {
            auto line = buffer_.substr(position_, end - position_);
            position_ = end + 2;
            return line;
        }
        fill();
    }
}

std::string raw_client::read_exactly(std::size_t count) {
    while (buffer_.size() - position_ < count) fill();
    auto bytes = buffer_.substr(position_, count);
    position_ += count;
    return bytes;
}

void raw_client::fill() {
    buffer_.erase(0, position_);
    position_ = 0;
    char chunk[65536];
    auto const got = stream_->read_some(chunk, sizeof chunk);
    if (got == 0) throw std::runtime_error{"the server closed the connection"};
    buffer_.append(chunk, got);
}

std::string describe(reply const& value) {
    switch (value.type) {
        case reply::kind::nil: return "nil";
        case reply::kind::status: return value.text;
        case reply::kind::error: return "error " + value.text;
        case reply::kind::integer: return std::to_string(value.integer);
        case reply::kind::bulk: return '"' + value.text + '"';
        case reply::kind::array: break;
    }
    std::string text = "[";
    for (auto const& element : value.elements) text += (text.size() > 1 ? ", " : "") + describe(element);
    return text + "]";
}

}  // namespace lockstep::test
