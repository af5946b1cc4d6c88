#include "history.hpp"

#include "base/clock.hpp"

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace lockstep::chaos {
namespace {

void put_text(std::string& out, char const* key, std::string_view value) {
    if (value.empty()) return;
    out += std::string{",\""} + key + "\":\"";
    for (char const c : value) {
        if (c == '"' || c == '\\') out += '\\';
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    out += '"';
}

template <class Number>
void put_number(std::string& out, char const* key, Number value) {
    if (value != 0) out += std::string{",\""} + key + "\":" + std::to_string(value);
}

class reader {
public:
    explicit reader(std::string_view text) : rest_{text} {}

    bool take(char wanted) {
        if (rest_.empty() || rest_.front() != wanted) return false;
        rest_.remove_prefix(1);
        return true;
    }
    bool done() const { return rest_.empty(); }

    bool text(std::string& into) {
        if (!take('"')) return false;
        into.clear();
        while (!rest_.empty() && rest_.front() != '"') {
            if (rest_.front() == '\\') rest_.remove_prefix(1);
            if (rest_.empty()) return false;
            into += rest_.front();
            rest_.remove_prefix(1);
        }
        return take('"');
    }
    template <class Number>
    bool number(Number& into) {
        auto const [end, problem] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), into);
        if (problem != std::errc{}) return false;
        rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
        return true;
    }

private:
    std::string_view rest_;
};

bool read_member(reader& in, event& into) {
    std::string key;
    if (!in.text(key) || !in.take(':')) return false;
    if (key == "t") return in.number(into.t);
    if (key == "fence") return in.number(into.fence);
    if (key == "n") return in.number(into.n);
    if (key == "who") return in.text(into.who);
    if (key == "what") return in.text(into.what);
    if (key == "name") return in.text(into.name);
    return key == "note" && in.text(into.note);
}

}  // namespace

std::string to_json(event const& one) {
    std::string out = "{\"t\":" + std::to_string(one.t);
    put_text(out, "who", one.who);
    put_text(out, "what", one.what);
    put_text(out, "name", one.name);
    put_number(out, "fence", one.fence);
    put_number(out, "n", one.n);
    put_text(out, "note", one.note);
    return out + "}";
}

std::optional<event> from_json(std::string_view line) {
    reader in{line};
    event found;
    if (!in.take('{')) return std::nullopt;
    do {
        if (!read_member(in, found)) return std::nullopt;
    } while (in.take(','));
    if (!in.take('}') || !in.done()) return std::nullopt;
    return found;
}

history parse_history(std::string_view lines) {
    history all;
    while (!lines.empty()) {
        auto const end = std::min(lines.find('\n'), lines.size());
        auto line = lines.substr(0, end);
        lines.remove_prefix(std::min(end + 1, lines.size()));
        line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
        if (line.empty()) continue;
        auto found = from_json(line);
        if (!found) throw std::invalid_argument{"no event: " + std::string{line}};
        all.push_back(std::move(*found));
    }
    std::stable_sort(all.begin(), all.end(), [](event const& a, event const& b) { return a.t < b.t; });
    return all;
}

std::int64_t boot_ns() { return base::boot_clock::now().time_since_epoch().count(); }

}  // namespace lockstep::chaos
