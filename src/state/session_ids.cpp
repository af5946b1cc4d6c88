#include "state/session_ids.hpp"

#include "base/random.hpp"
#include "redis/slot.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace lockstep::detail {
namespace {

constexpr unsigned groups = 1024;
constexpr std::size_t group_length = 3, random_length = 22, digest_length = 32, hash_length = 43;

bool has_form(std::string_view text, std::size_t length) noexcept {
    auto const is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
    auto const is_letter = [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
    };
    return text.size() == group_length + length && std::all_of(text.begin(), text.begin() + group_length, is_hex) &&
           std::all_of(text.begin() + group_length, text.end(), is_letter);
}

/// Without the padding.
std::string base64url(std::array<unsigned char, digest_length> const& bytes) {
    constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    std::string text;
    text.reserve(hash_length);
    unsigned bits = 0;
    int count = 0;
    for (auto const byte : bytes) {
        bits = (bits << 8U) | byte;
        for (count += 8; count >= 6; count -= 6) text += letters[(bits >> static_cast<unsigned>(count - 6)) & 63U];
    }
    text += letters[(bits << static_cast<unsigned>(6 - count)) & 63U];
    return text;
}

}  // namespace

bool is_session_id(std::string_view text) noexcept { return has_form(text, random_length); }
bool is_session_handle(std::string_view text) noexcept { return has_form(text, hash_length); }

std::string new_session_id(std::string_view group) { return std::string{group} + base::random_id(); }

std::string session_handle_of(std::string_view id) {
    std::array<unsigned char, digest_length> digest{};
    if (EVP_Digest(id.data(), id.size(), digest.data(), nullptr, EVP_sha256(), nullptr) != 1) {
        throw error(errc::unsuitable_server, "session_store: OpenSSL has no SHA-256");
    }
    return std::string{id.substr(0, group_length)} + base64url(digest);
}

std::string session_group_of(std::string_view user) { return fmt::format("{:03x}", redis::crc16::of(user) % groups); }
std::string any_session_group() { return fmt::format("{:03x}", base::random_below(groups)); }

}  // namespace lockstep::detail
