// Embedded scripts are the files, byte for byte but for what they include, with the SHA1 a server would give them; and the build
// refuses a script whose header does not tell the truth (cmake/embed_scripts.cmake, run here on samples).

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "scripts/all.hpp"

namespace {

namespace fs = std::filesystem;

std::string read(fs::path const& file) {
    std::ifstream in{file, std::ios::binary};
    return {std::istreambuf_iterator<char>{in}, {}};
}

std::string sha1_of(std::string_view text) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned size = 0;
    EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr);
    std::string hex;
    for (unsigned i = 0; i < size; ++i) {
        std::array<char, 3> pair{};
        std::snprintf(pair.data(), pair.size(), "%02x", unsigned{digest[i]});
        hex += pair.data();
    }
    return hex;
}

// What is generated for the script `sample`.
std::string embedded(std::string const& text, unsigned keys, std::string const& read_only = "false") {
    return "sample_text[] = R\"lua(" + text + ")lua\";\nconstinit script const sample{\"sample\", {sample_text, sizeof sample_text - 1}, \"" +
           sha1_of(text) + "\", " + std::to_string(keys) + ", " + read_only + "};\n";
}

// The file with each line `--#include x` replaced by include/x.lua.
std::string expanded(fs::path const& file) {
    std::ifstream in{file, std::ios::binary};
    std::string whole, mark = "--#include ";
    for (std::string line; std::getline(in, line);)
        whole += line.starts_with(mark) ? read(file.parent_path() / "include" / (line.substr(mark.size()) + ".lua"))
                                        : line + '\n';
    return whole;
}

TEST(scripts, are_the_files_byte_for_byte_with_what_they_include) {
    std::size_t files = 0;
    for (auto const& entry : fs::directory_iterator{fs::path{LOCKSTEP_SOURCE_DIR} / "src/scripts"})
        files += entry.path().extension() == ".lua" ? 1 : 0;
    EXPECT_EQ(lockstep::scripts::all().size(), files);

    for (auto const* const script : lockstep::scripts::all()) {
        fs::path const file = fs::path{LOCKSTEP_SOURCE_DIR} / "src/scripts" / (std::string{script->name} + ".lua");
        EXPECT_EQ(script->text, expanded(file)) << script->name;
        EXPECT_EQ(script->sha1, sha1_of(script->text)) << script->name;
    }
    EXPECT_EQ(lockstep::scripts::compare_and_delete.keys, 1U);
}

// Runs the check on one script named sample.lua; what it says is in `output`, what it generated in `generated`.
class script_check : public testing::Test {
protected:
    script_check() {
        std::string pattern = (fs::temp_directory_path() / "lockstep-scripts-XXXXXX").string();
        folder_ = ::mkdtemp(pattern.data());
    }
    ~script_check() override { fs::remove_all(folder_); }

    // What a script reads that is no local of it, by its code: a server finds out when that line is run.
    std::set<std::string> globals_of(std::string_view script) {
        auto const file = folder_ / "script.lua";
        std::ofstream{file, std::ios::binary} << script;
        std::FILE* const listing = ::popen(("luac5.1 -p -l -l " + file.string() + " 2>&1").c_str(), "r");
        std::string text;
        for (std::array<char, 4096> part{}; std::fgets(part.data(), part.size(), listing) != nullptr;) text += part.data();
        EXPECT_EQ(::pclose(listing), 0) << text;
        std::set<std::string> names;
        std::regex const access{"[GS]ETGLOBAL\\s+\\S+ \\S+\\s*; (\\S+)"};
        for (std::sregex_iterator one{text.begin(), text.end(), access}, end; one != end; ++one) names.insert((*one)[1]);
        return names;
    }

    void include(std::string const& name, std::string const& text) {
        fs::create_directories(folder_ / "include");
        std::ofstream{folder_ / "include" / name, std::ios::binary} << text;
    }

    bool passes(std::string const& text) {
        std::ofstream{folder_ / "sample.lua", std::ios::binary} << text;
        std::string const command = std::string{LOCKSTEP_CMAKE} + " -DSCRIPTS_DIR=" + folder_.string() +
                                    " -DOUT_DIR=" + folder_.string() + " -P " + LOCKSTEP_SOURCE_DIR +
                                    "/cmake/embed_scripts.cmake > " + (folder_ / "output").string() + " 2>&1";
        int const status = std::system(command.c_str());
        output = read(folder_ / "output");
        generated = read(folder_ / "scripts/all.cpp");
        return status == 0;
    }

    std::string output, generated;

private:
    fs::path folder_;
};

TEST_F(script_check, finds_nothing_in_ours_that_is_not_there) {
    std::set<std::string> const known{"ARGV", "KEYS", "ipairs", "math", "next", "pairs", "pcall", "redis", "select", "setmetatable", "string", "struct",
                                      "table", "tonumber", "tostring", "type", "unpack"};
    EXPECT_EQ(globals_of("local here = 1\nlocal function f() gone(here, KEYS) end"), (std::set<std::string>{"KEYS", "gone"}));
    for (auto const* const script : lockstep::scripts::all()) {
        auto unknown = globals_of(script->text);
        std::erase_if(unknown, [&](auto const& name) { return known.contains(name); });
        EXPECT_EQ(unknown, std::set<std::string>{}) << script->name;
    }
}

TEST_F(script_check, accepts_and_copies_difficult_text) {
    std::string const text =
        "--[[ sample: difficult [ text ; here.\n"
        "  KEYS[1]  key   hash\n"
        "  ARGV[1]  one   a value; with [ and \" and \\\n"
        "  ARGV[2..] all  the others\n"
        "  Returns  {1, 2} | nil\n"
        "]]\n"
        "local a = {[1] = '[', [2] = \"]]\", [3] = ';;', ['${x}'] = '\\\\', ['-- ARGV[7]'] = [[long]]}; -- don't use "
        "ARGV[9]\n"
        "local t = {KEYS[1], ARGV[ 1 ]}; for i = 2, #ARGV do t[i] = ARGV[i] end\n"
        "return a[t[1]]";
    EXPECT_TRUE(passes(text)) << output;
    EXPECT_THAT(generated, testing::HasSubstr(embedded(text, 1)));
}

TEST_F(script_check, puts_in_what_a_script_includes) {
    include("one.lua", "local a = {[1] = ';'}\n");
    include("two.lua", "local b = ARGV[1]\n");
    std::string const head = "--[[ sample: x\n  ARGV[1]  one  a value\n  Returns  1\n]]\n";
    EXPECT_TRUE(passes(head + "--#include one\nlocal s = '--#include none'\n--#include two\nreturn 1")) << output;
    std::string const whole = head + "local a = {[1] = ';'}\nlocal s = '--#include none'\nlocal b = ARGV[1]\nreturn 1";
    EXPECT_THAT(generated, testing::HasSubstr(embedded(whole, 0)));

    EXPECT_FALSE(passes(head + "--#include one\nreturn 1\n")) << "nothing uses ARGV[1]";
    EXPECT_NE(output.find("declares ARGV[1]"), std::string::npos) << output;
    EXPECT_FALSE(passes(head + "--#include three\nreturn ARGV[1]\n"));
    EXPECT_NE(output.find("no include/three.lua"), std::string::npos) << output;
    include("three.lua", "--#include one\n");
    EXPECT_FALSE(passes(head + "--#include three\nreturn ARGV[1]\n"));
    EXPECT_NE(output.find("includes another"), std::string::npos) << output;
}

TEST_F(script_check, lets_one_that_grows_nothing_say_so_before_its_header) {
    std::string const text = "--[[ sample: x\n  KEYS[1]  key  string\n  Returns  1\n]]\nreturn redis.call('DEL', KEYS[1])\n";
    EXPECT_TRUE(passes("#!lua flags=allow-oom\n" + text)) << output;
    EXPECT_THAT(generated, testing::HasSubstr(embedded("#!lua flags=allow-oom\n" + text, 1))) << "that line is part of the text";
    for (auto const* const other : {"#!lua\n", "#!lua flags=no-cluster\n", "#!lua flags=allow-oom,no-cluster\n", "\n#!lua flags=allow-oom\n"}) {
        EXPECT_FALSE(passes(other + text)) << other;
        EXPECT_NE(output.find("must open with"), std::string::npos) << output;
    }
}

TEST_F(script_check, knows_one_that_changes_nothing_by_its_header) {
    std::string const code = "\n  KEYS[1]  key  string\n  Returns  1\n]]\nreturn redis.call('GET', KEYS[1])\n";
    EXPECT_TRUE(passes("--[[ sample: x. Changes nothing." + code)) << output;
    EXPECT_THAT(generated, testing::HasSubstr(embedded("--[[ sample: x. Changes nothing." + code, 1, "true")));
    EXPECT_TRUE(passes("--[[ sample: x. The same again changes nothing." + code + "-- Changes nothing.\n")) << output;
    EXPECT_THAT(generated, testing::HasSubstr(embedded("--[[ sample: x. The same again changes nothing." + code + "-- Changes nothing.\n", 1)));
}

TEST_F(script_check, refuses_headers_that_do_not_tell_the_truth) {
    struct sample {
        char const* text;
        char const* complaint;
    };
    for (auto const& [text, complaint] : std::vector<sample>{
             {"return 1\n", "must open with"},
             {"--[[ other: x\n Returns 1\n]]\nreturn 1\n", "must open with"},
             {"--[[ sample: x\n Returns 1\n", "not closed"},
             {"--[[ sample: x\n]]\nreturn 1\n", "Returns"},
             {"--[[ sample: x\n KEYS[1] k\n Returns 1\n]]\nreturn 1\n", "declares KEYS[1]"},
             {"--[[ sample: x\n Returns 1\n]]\nreturn ARGV[1]\n", "uses ARGV[1]"},
             {"--[[ sample: x\n ARGV[2] b\n Returns 1\n]]\nreturn ARGV[2]\n", "ARGV[1] is not"},
             {"--[[ sample: x\n ARGV[1] a\n ARGV[1] b\n Returns 1\n]]\nreturn ARGV[1]\n", "twice"},
             {"--[[ sample: x\n ARGV[1] a\n Returns 1\n]]\nreturn ARGV[1] + #ARGV\n", "declare ARGV[2..]"},
             {"--[[ sample: x\n ARGV[1..] a\n Returns 1\n]]\nreturn ARGV[1]\n", "literal indices only"},
             {"--[[ sample: x\n ARGV[2..] a\n Returns 1\n]]\nreturn #ARGV\n", "should be ARGV[1..]"},
             {"--[[ sample: x\n Returns 1\n]]\n--[[ more\n]]\nreturn 1\n", "block comment"},
         }) {
        EXPECT_FALSE(passes(text)) << text;
        EXPECT_NE(output.find(complaint), std::string::npos) << text << output;
    }
}

}  // namespace
