#include "redis/sentinel_replies.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

namespace lockstep::redis {
namespace {

template <class T>
T number(std::string_view text) {
    T value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

std::optional<endpoint> endpoint_of(std::string_view host, std::string_view port_text) {
    auto const port = number<std::uint16_t>(port_text);
    if (host.empty() || port == 0) return std::nullopt;
    return endpoint{.host = std::string{host}, .port = port, .path = {}};
}
std::optional<endpoint> endpoint_of(reply_view host, reply_view port) {
    if (!host.is_text() || host.is_error() || !port.is_text()) return std::nullopt;
    return endpoint_of(host.text(), port.text());
}

}  // namespace

std::optional<endpoint> read_master(reply_view answer) {
    if (!answer.is_aggregate() || answer.size() != 2) return std::nullopt;
    return endpoint_of(answer[0], answer[1]);
}

std::uint64_t read_epoch(reply_view answer) {
    auto const epoch = answer.is_aggregate() ? answer.find("config-epoch") : reply_view{};
    return epoch.is_text() ? number<std::uint64_t>(epoch.text()) : 0;
}

std::vector<endpoint> read_sentinels(reply_view answer) {
    std::vector<endpoint> others;
    if (!answer.is_aggregate()) return others;
    for (auto const one : answer) {
        if (!one.is_aggregate()) continue;
        if (auto where = endpoint_of(one.find("ip"), one.find("port"))) others.push_back(*std::move(where));
    }
    return others;
}

std::optional<endpoint> read_switch(std::string_view payload, std::string_view master) {
    std::array<std::string_view, 5> words;
    std::size_t count = 0;
    for (std::size_t begin = 0; begin <= payload.size(); ++count) {
        if (count == words.size()) return std::nullopt;
        auto const end = std::min(payload.find(' ', begin), payload.size());
        words[count] = payload.substr(begin, end - begin);
        begin = end + 1;
    }
    if (count != words.size() || words[0] != master) return std::nullopt;
    return endpoint_of(words[3], words[4]);
}

}  // namespace lockstep::redis
