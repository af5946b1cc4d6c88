#include "command_lines.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <iterator>
#include <utility>

namespace lockstep::test {
namespace {

using line = std::vector<std::string>;

constexpr std::size_t lines_of_a_command = 60;

// Of a map, which RESP2 has as a list.
reply const* member(reply const& map, std::string const& name) {
    for (std::size_t i = 0; i + 1 < map.elements.size(); i += 2) {
        if (map.elements[i].text == name) return &map.elements[i + 1];
    }
    return nullptr;
}

std::string text_of(reply const& map, std::string const& name) {
    auto const* const found = member(map, name);
    return found == nullptr ? std::string{} : found->text;
}

bool has_flag(reply const& argument, std::string const& flag) {
    auto const* const flags = member(argument, "flags");
    return flags != nullptr && std::any_of(flags->elements.begin(), flags->elements.end(), [&](reply const& one) { return one.text == flag; });
}

std::vector<line> lines_of(reply const* arguments);

// What may stand for an argument that is there.
std::vector<line> forms_of(reply const& argument) {
    auto const type = text_of(argument, "type"), name = text_of(argument, "name"), token = text_of(argument, "token");
    std::vector<line> forms;
    if (type == "oneof") {
        for (auto const& one : member(argument, "arguments")->elements) std::ranges::move(forms_of(one), std::back_inserter(forms));
    } else if (type == "block") {
        forms = lines_of(member(argument, "arguments"));
    } else if (type == "key") {
        forms = {{key_place}};
    } else if (type == "pure-token") {
        return {{token}};
    } else if (type == "integer" && name == "numkeys") {
        forms = {{"1"}, {"0"}};
    } else if (name == "timeout") {
        forms = {{"1"}};  // 0 would wait for ever
    } else if (type == "integer" || type == "double" || type == "unix-time") {
        forms = {{"0"}, {"1"}};
    } else if (name == "script") {
        forms = {{"return 1"}};
    } else {
        forms = {{type == "pattern" ? "*" : "x"}};
    }
    if (!token.empty()) {
        for (auto& form : forms) form.insert(form.begin(), token);
    }
    return forms;
}

// All arguments that are needed, in their first forms; then the same with each other form, and each optional one.
std::vector<line> lines_of(reply const* arguments) {
    if (arguments == nullptr) return {{}};
    std::vector<std::vector<line>> forms;
    std::vector<line> usual;
    for (auto const& one : arguments->elements) {
        forms.push_back(forms_of(one));
        usual.push_back(has_flag(one, "optional") ? line{} : forms.back().front());
    }
    std::vector<line> all;
    auto const add = [&](std::vector<line> const& parts) {
        line whole;
        for (auto const& part : parts) whole.insert(whole.end(), part.begin(), part.end());
        if (std::ranges::find(all, whole) == all.end()) all.push_back(std::move(whole));
    };
    add(usual);
    for (std::size_t i = 0; i < forms.size(); ++i) {
        for (auto const& form : forms[i]) {
            auto parts = usual;
            parts[i] = form;
            add(parts);
        }
    }
    if (all.size() > lines_of_a_command) all.resize(lines_of_a_command);
    return all;
}

std::string upper(std::string text) {
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return text;
}

}  // namespace

std::size_t command_line::keys() const { return static_cast<std::size_t>(std::ranges::count(words, std::string{key_place})); }

std::vector<std::string> command_line::with_keys(std::size_t i, std::string const& key, std::string const& rest) const {
    auto made = words;
    for (auto& word : made) {
        if (word == key_place) word = i-- == 0 ? key : rest;
    }
    return made;
}

std::vector<command_line> lines_of_all_commands(raw_client& server) {
    std::vector<command_line> all;
    auto const add = [&](std::string const& name, reply const& about) {
        line head;
        for (auto rest = name; !rest.empty();) {
            auto const end = std::min(rest.find('|'), rest.size());
            head.push_back(upper(rest.substr(0, end)));
            rest.erase(0, end + 1);
        }
        for (auto const& arguments : lines_of(member(about, "arguments"))) {
            auto words = head;
            words.insert(words.end(), arguments.begin(), arguments.end());
            all.push_back({name, std::move(words)});
        }
    };
    auto const docs = server.must({"COMMAND", "DOCS"});
    for (std::size_t i = 0; i + 1 < docs.elements.size(); i += 2) {
        auto const& about = docs.elements[i + 1];
        auto const* const parts = member(about, "subcommands");
        if (parts == nullptr) {
            add(docs.elements[i].text, about);
            continue;
        }
        for (std::size_t k = 0; k + 1 < parts->elements.size(); k += 2) add(parts->elements[k].text, parts->elements[k + 1]);
    }
    return all;
}

}  // namespace lockstep::test
