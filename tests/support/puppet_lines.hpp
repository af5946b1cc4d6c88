// What processes share that do as the lines of their input say.
#pragma once

#include <cstddef>
#include <exception>
#include <iostream>
#include <string>

namespace lockstep::test {

/// Of a word that is percent-encoded.
inline std::string decoded(std::string const& word) {
    std::string out;
    for (std::size_t i = 0; i < word.size(); ++i) {
        if (word[i] != '%') {
            out += word[i];
            continue;
        }
        out += static_cast<char>(std::stoi(word.substr(i + 1, 2), nullptr, 16));
        i += 2;
    }
    return out;
}

/// Answers each line with what `obey` returns for it, or with why it failed, until there are no more.
template <class F>
void answer_lines(F obey) {
    for (std::string line; std::getline(std::cin, line);) {
        try {
            std::cout << obey(line) << std::endl;
        } catch (std::exception const& failure) {
            std::cout << "failed: " << failure.what() << std::endl;
        }
    }
}

}  // namespace lockstep::test
