// What the tests of the `lockstep` program share: a server, and the program run against it.
#pragma once

#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/file_content.hpp"
#include "support/program_path.hpp"
#include "support/redis_server.hpp"
#include "support/scratch_dir.hpp"

#include <lockstep/client.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::test {

using namespace std::chrono_literals;

struct outcome {
    int code = -1;    // -1: a signal ended it, or it did not end
    int signal = 0;
    std::string text;  // stdout and stderr
};

class cli : public testing::Test {
protected:
    std::vector<std::string> line(std::vector<std::string> const& words) const {
        std::vector<std::string> all{program_path("lockstep"), "--redis", server.url()};
        all.insert(all.end(), words.begin(), words.end());
        return all;
    }
    // Starts it; its output is read with read_line.
    child_process begin(std::vector<std::string> const& words, child_options const& options = {}) const {
        return child_process{line(words), options};
    }
    // Runs it to its end.
    outcome run(std::vector<std::string> const& words, child_options options = {}) const { return finish(line(words), std::move(options)); }

    static outcome finish(std::vector<std::string> const& arguments, child_options options = {}) {
        child_process program{arguments, options};
        program.close_input();
        outcome seen;
        while (auto const text = program.read_line(20s)) seen.text += *text + "\n";
        auto const end = program.wait(20s);
        if (!end) {
            ADD_FAILURE() << arguments.at(3) << " does not end; it said: " << seen.text;
            return seen;
        }
        seen.code = end->code;
        seen.signal = end->signal;
        return seen;
    }

    redis_server server;
    scratch_dir home;
};

}  // namespace lockstep::test
