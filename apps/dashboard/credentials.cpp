#include "dashboard/credentials.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <stdexcept>

namespace lockstep::dashboard {

namespace {

constexpr std::size_t shortest_token = 16;
constexpr double least_bits = 25;  // of random texts of 16 hexadecimal digits one in 100,000 has less

template <std::size_t Size>
std::string hexadecimal(std::array<unsigned char, Size> const& bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    for (auto const byte : bytes) text += {digits[byte >> 4], digits[byte & 15]};
    return text;
}

// The shortest beginning of which it is a repetition: "ab" of "ababab".
std::string_view repeated_part(std::string_view text) {
    for (std::size_t length = 1; length < text.size(); ++length)
        if (text.substr(length) == text.substr(0, text.size() - length)) return text.substr(0, length);
    return text;
}

// Without the characters that continue a run such as 1111, 1234 or fedc.
std::string without_runs(std::string_view text) {
    std::string kept;
    for (std::size_t i = 0; i < text.size(); ++i) {
        bool const continues = i >= 2 && text[i] - text[i - 1] == text[i - 1] - text[i - 2] && std::abs(text[i] - text[i - 1]) <= 1;
        if (!continues) kept += text[i];
    }
    return kept;
}

// Shannon's entropy of its characters, times their number.
double bits_of(std::string_view text) {
    std::array<std::size_t, 256> counts{};
    for (char const c : text) ++counts[static_cast<unsigned char>(c)];
    double bits = 0;
    for (auto const count : counts) {
        if (count == 0) continue;
        auto const times = static_cast<double>(count);
        bits -= times * std::log2(times / static_cast<double>(text.size()));
    }
    return bits;
}

}  // namespace

std::string random_secret() {
    std::array<unsigned char, 16> bytes{};
    if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) throw std::runtime_error{"OpenSSL has no random numbers"};
    return hexadecimal(bytes);
}

std::string digest(std::string_view secret) {
    std::array<unsigned char, 32> bytes{};
    if (EVP_Digest(secret.data(), secret.size(), bytes.data(), nullptr, EVP_sha256(), nullptr) != 1)
        throw std::runtime_error{"OpenSSL could not compute a SHA-256"};
    return hexadecimal(bytes);
}

bool same_secret(std::string_view a, std::string_view b) {
    // Of equal length whatever they are, so that not even the length shows.
    auto const left = digest(a);
    auto const right = digest(b);
    return CRYPTO_memcmp(left.data(), right.data(), left.size()) == 0;
}

std::optional<std::string> weakness_of(std::string_view token) {
    if (token.size() < shortest_token) return "it has " + std::to_string(token.size()) + " bytes and needs at least " + std::to_string(shortest_token);
    for (char const c : token)
        if (c <= ' ' || c > '~') return "it has a character that no header can carry; use letters, digits and punctuation of ASCII";
    if (bits_of(without_runs(repeated_part(token))) < least_bits) return "it repeats too few characters and could be guessed";
    return std::nullopt;
}

}  // namespace lockstep::dashboard
