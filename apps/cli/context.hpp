#pragma once

// What every sub-command has: how to reach the server, how to show things, how to fail.

#include "cli/exit_code.hpp"
#include "cli/terminal.hpp"

#include <lockstep/client.hpp>

#include <boost/json/fwd.hpp>
#include <unistd.h>

#include <chrono>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cli {

class context {
public:
    client_options connection{};
    bool json = false;
    bool verbose = false;
    std::vector<std::string> words;      ///< what stood behind `--`
    bool has_words = false;              ///< there was one, be it with nothing behind it
    bool has_limit = false;              ///< it is said how long to wait
    std::function<exit_code()> action;   ///< what the chosen sub-command does

    /// `name` is how monitors show this process, unless --name says otherwise.
    client connect(std::string_view name = {}) const;

    /// To standard output. Throws `output_closed` when nobody reads it any more.
    void print(std::string_view text) const;
    void print_json(boost::json::value const& value) const;
    /// What the server has stored, and a line end. On a terminal without what that would obey; else, byte by byte, as it is.
    void print_stored(std::string_view bytes) const;
    /// One line on standard error: "lockstep: ...". Lost where nobody takes it at once.
    void note(std::string_view text) const noexcept;
    /// With --json the value, else the text.
    void note(std::string_view text, boost::json::value const& value) const noexcept;
    /// What a monitor could not read.
    void note_unreadable(std::vector<std::string> const& keys) const;

    bool coloured() const { return colour_; }
    bool on_terminal() const { return terminal_; }
    std::size_t width() const { return terminal_ ? size_of_terminal().columns : 0; }

private:
    bool colour_ = has_colour(STDOUT_FILENO);
    bool terminal_ = ::isatty(STDOUT_FILENO) == 1;
};

/// Whoever read our output is gone (`lockstep ls | head`): no failure worth a word.
struct output_closed {};

/// A failure of the command itself, with what to do next.
struct failure : std::exception {
    failure(exit_code code_is, std::string what_was, std::string do_next = {}, char const* for_machines = "failed")
        : code(code_is), message(std::move(what_was)), hint(std::move(do_next)), word(code_is == exit_code::usage ? "usage" : for_machines) {}
    char const* what() const noexcept override { return message.c_str(); }
    exit_code code;
    std::string message;
    std::string hint;
    char const* word;  ///< `error` of the object that --json prints
};

/// What was asked for is not there. As with grep that is no error, and returns 1.
struct not_found : failure {
    explicit not_found(std::string what_is, std::string do_next = {}) : failure(exit_code::no, std::move(what_is), std::move(do_next), "not_found") {}
};

/// Says what was wrong and what to do next, on standard error; returns the code that belongs to it.
exit_code explain(context const& all, std::exception_ptr problem);

}  // namespace lockstep::cli
