// Secrets of the dashboard: how they are made, compared and judged. No state.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lockstep::dashboard {

// 128 bits from the operating system's generator, as 32 hexadecimal digits.
[[nodiscard]] std::string random_secret();

// SHA-256, as hexadecimal digits: what is kept of a secret that is looked up.
[[nodiscard]] std::string digest(std::string_view secret);

// Takes as long whatever they hold.
[[nodiscard]] bool same_secret(std::string_view a, std::string_view b);

// Why a token could be guessed; nothing when it looks random. An estimate from above: a word from a dictionary may pass.
[[nodiscard]] std::optional<std::string> weakness_of(std::string_view token);

}  // namespace lockstep::dashboard
