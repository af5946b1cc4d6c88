// The rules of the house that a compiler does not check: which folder may include which, what public headers may bring in,
// how large a file may grow, how a script declares itself, and coroutine forms that g++ 12 miscompiles.
//
// Each rule is a function from text to complaints, proven on a bad sample, then run over the tree. To let a line pass that a
// coroutine rule complains about, write the reason in a comment on it: `// tidy: these options are trivially destructible`.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;
using complaints = std::vector<std::string>;

fs::path const root{LOCKSTEP_SOURCE_DIR};

std::string read(fs::path const& file) {
    std::ifstream in{file, std::ios::binary};
    return {std::istreambuf_iterator<char>{in}, {}};
}

std::vector<fs::path> files_in(std::initializer_list<char const*> folders,
                               std::initializer_list<char const*> extensions) {
    std::vector<fs::path> found;
    for (auto const* const folder : folders) {
        if (!fs::is_directory(root / folder)) continue;
        for (auto const& entry : fs::recursive_directory_iterator{root / folder}) {
            auto const extension = entry.path().extension();
            bool const wanted =
                std::any_of(extensions.begin(), extensions.end(), [&](auto e) { return extension == e; });
            if (entry.is_regular_file() && wanted) found.push_back(fs::relative(entry.path(), root));
        }
    }
    std::sort(found.begin(), found.end());
    return found;
}

std::vector<fs::path> code_files() {
    return files_in({"include", "src", "apps", "tests", "bench", "examples"}, {".hpp", ".cpp"});
}

std::string joined(complaints const& all) {
    std::string text;
    for (auto const& one : all) text += "\n  " + one;
    return text;
}

// ---- layers ----

// From bottom to top, as in the design. A folder may include itself and what stands before it.
constexpr std::array<std::string_view, 14> layers{"base",      "resp",  "scripts", "redis",  "embedded",
                                                  "core",      "lease", "sync",    "quorum", "election",
                                                  "messaging", "state", "jobs",    "observe"};

std::size_t layer_of(std::string_view folder) {
    return static_cast<std::size_t>(std::find(layers.begin(), layers.end(), folder) - layers.begin());
}

// Public headers whose point is to bring in a foreign library.
constexpr std::array<std::string_view, 3> heavy_headers{"asio.hpp", "json.hpp", "metrics.hpp"};

bool is_heavy(std::string_view header) {
    return std::find(heavy_headers.begin(), heavy_headers.end(), header) != heavy_headers.end();
}

struct include {
    std::string path;
    bool quoted;
};

std::vector<include> includes_of(std::string const& text) {
    static std::regex const line{R"((?:^|\n)[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"])"};
    std::vector<include> found;
    for (std::sregex_iterator it{text.begin(), text.end(), line}, end; it != end; ++it)
        found.push_back({(*it)[2], (*it)[1] == "\""});
    return found;
}

// `home` says which folder of src/ a public header belongs to, where that is known: the one that has a source of its name.
using homes = std::map<std::string, std::string>;

homes homes_of_public_headers() {
    homes home;
    for (auto const& header : files_in({"include"}, {".hpp"}))
        for (auto const folder : layers)
            if (!home.contains(header.filename()) &&
                fs::exists(root / "src" / folder / (header.stem().string() + ".cpp")))
                home[header.filename()] = folder;
    return home;
}

complaints check_includes(fs::path const& file, std::string const& text, homes const& home) {
    static std::regex const foreign{R"(^(boost|openssl|fmt|absl|nlohmann|CLI)/.*)"};
    static std::regex const sockets{R"(^(boost/asio|boost/beast|openssl/|sys/socket|netinet/|sys/un\.h).*)"};
    complaints found;
    auto const complain = [&](include const& what, std::string const& why) {
        found.push_back(file.string() + " includes " + what.path + ": " + why);
    };
    auto part = file.begin();
    bool const is_public = *part == "include";
    std::string const folder = is_public ? "" : std::next(part)->string();
    if (!is_public && layer_of(folder) == layers.size()) return {file.string() + ": src/" + folder + " is in no layer"};

    for (auto const& what : includes_of(text)) {
        bool const is_foreign = std::regex_match(what.path, foreign);
        bool const is_ours = what.path.starts_with("lockstep/");
        auto const name = fs::path{what.path}.filename().string();
        if (is_public) {
            if (what.quoted) complain(what, "a public header includes <lockstep/...> and the standard library only");
            if (is_heavy(file.filename().string())) continue;
            if (is_foreign) complain(what, "public headers stay light");
            if (is_ours && is_heavy(name)) complain(what, "that one is for those who ask for it");
            continue;
        }
        if (what.quoted && what.path.find('/') != std::string::npos) {
            auto const other = *fs::path{what.path}.begin();
            if (layer_of(other.string()) > layer_of(folder)) complain(what, folder + " stands below " + other.string());
        }
        if (is_ours && home.contains(name) && layer_of(home.at(name)) > layer_of(folder))
            complain(what, folder + " stands below " + home.at(name));
        if (folder == "base" && is_foreign && file.filename() != "asio_impl.cpp")
            complain(what, "src/base uses the standard library only");
        if (folder == "resp" && std::regex_match(what.path, sockets)) complain(what, "src/resp knows no sockets");
    }
    return found;
}

TEST(tidy, notices_an_include_that_points_upwards) {
    homes const home{{"mutex.hpp", "sync"}, {"error.hpp", "base"}};
    auto const count = [&](char const* file, char const* text) { return check_includes(file, text, home).size(); };
    EXPECT_EQ(count("src/redis/a.cpp", "#include \"redis/b.hpp\"\n#include \"resp/c.hpp\"\n#include <boost/asio.hpp>"),
              0U);
    EXPECT_EQ(count("src/redis/a.cpp", "#include \"core/client.hpp\"\n"), 1U);
    EXPECT_EQ(count("src/redis/a.cpp", "#include <lockstep/error.hpp>\n#include <lockstep/mutex.hpp>\n"), 1U);
    EXPECT_EQ(count("src/utils/a.cpp", ""), 1U);
    EXPECT_EQ(count("src/base/a.cpp", "#include <vector>\n#  include <boost/asio.hpp>\n"), 1U);
    EXPECT_EQ(count("src/base/asio_impl.cpp", "#include <boost/asio/impl/src.hpp>\n"), 0U);
    EXPECT_EQ(count("src/resp/a.cpp", "#include <sys/socket.h>\n"), 1U);
    EXPECT_EQ(count("include/lockstep/a.hpp", "#include <openssl/ssl.h>\n#include <boost/beast.hpp>\n"), 2U);
    EXPECT_EQ(count("include/lockstep/a.hpp", "#include <lockstep/asio.hpp>\n#include \"redis/b.hpp\"\n"), 2U);
    EXPECT_EQ(count("include/lockstep/asio.hpp", "#include <boost/asio.hpp>\n"), 0U);
}

TEST(tidy, includes_point_downwards) {
    auto const home = homes_of_public_headers();
    for (auto const& file : files_in({"include", "src"}, {".hpp", ".cpp"})) {
        auto const found = check_includes(file, read(root / file), home);
        EXPECT_TRUE(found.empty()) << joined(found);
    }
}

// ---- file sizes ----

// A file above its guide is one to look at; above twice the guide it is one to split.
std::size_t size_guide(fs::path const& file) {
    if (file.extension() == ".lua") return 60;
    return file.extension() == ".hpp" ? 150 : 400;
}

TEST(tidy, files_stay_small) {
    auto all = code_files();
    std::ranges::copy(files_in({"src"}, {".lua"}), std::back_inserter(all));
    for (auto const& file : all) {
        auto const text = read(root / file);
        auto const lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
        auto const guide = size_guide(file);
        if (lines > guide) std::printf("to look at: %s has %zu lines (guide %zu)\n", file.c_str(), lines, guide);
        EXPECT_LE(lines, 2 * guide) << file << ": split it";
    }
}

// ---- coroutine forms ----

// The text with comments and literals blanked, so that brackets and words mean what they say. Lines stay where they were.
std::string without_comments_and_literals(std::string const& text) {
    std::string code = text;
    auto const word_before = [&](std::size_t at) {
        return at > 0 && (std::isalnum(static_cast<unsigned char>(text[at - 1])) || text[at - 1] == '_');
    };
    // Where the literal with this quote ends, given where it starts.
    auto const closing = [&](std::size_t at, char quote) {
        for (++at; at < text.size() && text[at] != quote && text[at] != '\n'; ++at)
            if (text[at] == '\\') ++at;
        return at + 1;
    };
    auto const after = [&](std::string const& mark, std::size_t from) {
        auto const at = text.find(mark, from);
        return at == std::string::npos ? text.size() : at + mark.size();
    };
    for (std::size_t at = 0; at < text.size();) {
        auto end = at;
        if (text.compare(at, 2, "//") == 0) {
            end = std::min(text.find('\n', at), text.size());
        } else if (text.compare(at, 2, "/*") == 0) {
            end = after("*/", at + 2);
        } else if (text.compare(at, 2, "R\"") == 0 && !word_before(at)) {
            auto const open = text.find('(', at);
            end = after(")" + text.substr(at + 2, open - at - 2) + "\"", at + 2);
        } else if (text[at] == '"' || (text[at] == '\'' && !word_before(at))) {  // 1'000 is a number
            end = std::min(closing(at, text[at]), text.size());
        }
        if (end == at) ++at;
        for (; at < end; ++at)
            if (code[at] != '\n') code[at] = ' ';
    }
    return code;
}

// Calls visit(index, enclosing) for the characters of the expression that starts at `from`, up to where it ends. Bodies in
// braces are passed over: what stands there is another statement.
template <typename Visit>
void walk_expression(std::string const& code, std::size_t from, Visit visit) {
    std::string open;
    for (auto i = from; i < code.size(); ++i) {
        char const c = code[i];
        bool const inside_braces = open.find('{') != std::string::npos;
        if (c == ';' && !inside_braces) return;
        if (!inside_braces) visit(i, open.empty() ? ' ' : open.back());
        if (c == '(' || c == '[' || c == '{') open += c;
        if (c == ')' || c == ']' || c == '}') {
            if (open.empty()) return;
            open.pop_back();
        }
    }
}

char before(std::string const& code, std::size_t at) {
    while (at > 0 && std::isspace(static_cast<unsigned char>(code[at - 1]))) --at;
    return at == 0 ? ' ' : code[at - 1];
}

complaints check_coroutines(std::string const& file, std::string const& text) {
    static constexpr std::string_view word = "co_await";
    complaints found;
    auto const code = without_comments_and_literals(text);
    auto const complain = [&](std::size_t at, char const* why) {
        auto const start = text.rfind('\n', at) + 1;
        if (text.substr(start, text.find('\n', at) - start).find("// tidy: ") != std::string::npos) return;
        auto const line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1;
        found.push_back(file + ":" + std::to_string(line) + ": " + why);
    };
    for (auto at = code.find('?'); at != std::string::npos; at = code.find('?', at + 1))
        walk_expression(code, at + 1, [&](std::size_t i, char) {
            if (code.compare(i, word.size(), word) == 0) complain(i, "co_await inside ?: is miscompiled; write an if");
        });
    for (auto at = code.find(word); at != std::string::npos; at = code.find(word, at + 1))
        walk_expression(code, at, [&](std::size_t i, char enclosing) {
            char const previous = before(code, i);
            bool const starts_argument = previous == '(' || previous == ',';
            if (code[i] == '{' && starts_argument && enclosing == '(')
                complain(i, "braces as an argument inside co_await are miscompiled; name the value first");
            bool const is_index = std::isalnum(static_cast<unsigned char>(previous)) || previous == '_' ||
                                  previous == ')' || previous == ']';
            if (code[i] == '[' && !is_index && code.find_first_not_of(" \n", i + 1) != code.find(']', i + 1))
                complain(i, "a lambda with captures inside co_await is miscompiled; name it first");
        });
    return found;
}

TEST(tidy, notices_miscompiled_coroutine_forms) {
    auto const count = [](char const* text) { return check_coroutines("sample", text).size(); };
    EXPECT_EQ(count("auto x = c ? co_await f(1) : y;"), 1U);
    EXPECT_EQ(count("return c ? g({1}) : co_await f(1);"), 1U);
    EXPECT_EQ(count("if (a ? b : c) { co_await f(); }"), 0U);
    EXPECT_EQ(count("co_await f(a ? b : c);"), 0U);
    EXPECT_EQ(count("co_await f({.name = \"x\"});"), 1U);
    EXPECT_EQ(count("auto r = co_await f(\n    a, {1, 2});"), 1U);
    EXPECT_EQ(count("co_await g(f({1}));"), 1U);
    EXPECT_EQ(count("co_await f({.ttl = 1s});  // tidy: trivially destructible"), 0U);
    EXPECT_EQ(count("co_await f(options{1}); h({1});"), 0U);
    EXPECT_EQ(count("co_await f([name] { return name; });"), 1U);
    EXPECT_EQ(count("co_await f([&](int) {}, 1);"), 1U);
    EXPECT_EQ(count("co_await f([](int) { g({1}); });"), 0U);
    EXPECT_EQ(count("co_await f(table[i], matrix()[0]);"), 0U);
    EXPECT_EQ(count("// co_await f({1});\nauto t = \"c ? co_await\"; auto n = 1'000 + '?'; co_await f();"), 0U);
    EXPECT_EQ(count("auto t = \"/*\"; co_await f({1}); // */"), 1U);
    EXPECT_EQ(count("auto t = R\"x(co_await f({1});)x\"; /* co_await f({1}); */"), 0U);
}

TEST(tidy, no_miscompiled_coroutine_forms) {
    for (auto const& file : code_files()) {
        auto const found = check_coroutines(file.string(), read(root / file));
        EXPECT_TRUE(found.empty()) << joined(found);
    }
}

}  // namespace
