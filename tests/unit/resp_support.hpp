#pragma once

// Values as a server would send them, with the bytes for them: what the parser's tests compare with.

#include <lockstep/reply.hpp>

#include "resp/parser.hpp"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::test {

struct value {
    reply_type type = reply_type::null;
    std::string text;  // with "txt:" for a verbatim string
    std::int64_t integer = 0;
    double real = 0;
    std::vector<value> children;
};

inline bool is_aggregate(reply_type type) { return type >= reply_type::array; }

inline bool equal(value const& expected, reply_view given) {
    if (given.type() != expected.type) return false;
    switch (expected.type) {
        case reply_type::null: return true;
        case reply_type::integer: return given.integer() == expected.integer;
        case reply_type::boolean: return given.boolean() == (expected.integer != 0);
        case reply_type::real: return given.real() == expected.real || (std::isnan(given.real()) && std::isnan(expected.real));
        case reply_type::verbatim_string:
            return given.text() == expected.text.substr(4) && given.text_format() == expected.text.substr(0, 3);
        default: break;
    }
    if (!is_aggregate(expected.type)) return given.text() == expected.text;
    if (given.size() != expected.children.size()) return false;
    std::size_t i = 0;
    for (auto child : given)
        if (!equal(expected.children[i++], child)) return false;
    return i == expected.children.size();
}

/// Makes values and their bytes from a seed; the same seed gives the same ones.
class server {
public:
    explicit server(std::uint64_t seed) : random_(seed) {}

    std::size_t below(std::size_t end) { return std::uniform_int_distribution<std::size_t>(0, end - 1)(random_); }

    value make(int depth = 0) {
        constexpr auto kinds = static_cast<std::size_t>(reply_type::push) + 1;
        value made;
        made.type = static_cast<reply_type>(below(kinds));
        while ((made.type == reply_type::push && depth != 0) || (is_aggregate(made.type) && depth > 3))
            made.type = static_cast<reply_type>(below(kinds));
        switch (made.type) {
            case reply_type::null: break;
            case reply_type::simple_string: made.text = letters(below(20)); break;
            case reply_type::error: made.text = "ERR " + letters(below(20)); break;
            case reply_type::bulk_string: made.text = bytes(below(40)); break;
            case reply_type::verbatim_string: made.text = "txt:" + bytes(below(40)); break;
            case reply_type::big_number: made.text = "-1" + std::string(below(40), '7'); break;
            case reply_type::integer:
                made.integer = static_cast<std::int64_t>(random_() >> below(64)) * (below(2) != 0 ? 1 : -1);
                break;
            case reply_type::boolean: made.integer = static_cast<std::int64_t>(below(2)); break;
            case reply_type::real: made.real = number(); break;
            default: {
                auto const count = below(6) * (made.type == reply_type::map ? 2 : 1);
                for (std::size_t i = 0; i != count; ++i) made.children.push_back(make(depth + 1));
            }
        }
        return made;
    }

    /// The bytes of `made`, sometimes in its streamed form, sometimes with attributes in front.
    std::string encode(value const& made) {
        std::string out;
        if (below(10) == 0) out += "|1\r\n" + encode({reply_type::simple_string, "ttl", 0, 0, {}}) + encode(make(3));
        switch (made.type) {
            case reply_type::null: {
                constexpr char const* forms[] = {"_\r\n", "$-1\r\n", "*-1\r\n"};
                return out + forms[below(3)];
            }
            case reply_type::simple_string: return out + "+" + made.text + "\r\n";
            case reply_type::bulk_string: return out + (below(4) == 0 ? chunks(made.text) : counted('$', made.text));
            case reply_type::verbatim_string: return out + counted('=', made.text);
            case reply_type::big_number: return out + "(" + made.text + "\r\n";
            case reply_type::error: return out + (below(2) == 0 ? counted('!', made.text) : "-" + made.text + "\r\n");
            case reply_type::integer: return out + ":" + std::to_string(made.integer) + "\r\n";
            case reply_type::real: return out + "," + shortest(made.real) + "\r\n";
            case reply_type::boolean: return out + (made.integer != 0 ? "#t\r\n" : "#f\r\n");
            case reply_type::array: return out + aggregate('*', made, 1);
            case reply_type::set: return out + aggregate('~', made, 1);
            case reply_type::map: return out + aggregate('%', made, 2);
            case reply_type::push: return out + aggregate('>', made, 1);
        }
        return out;
    }

private:
    static std::string counted(char type, std::string const& text) {
        return type + std::to_string(text.size()) + "\r\n" + text + "\r\n";
    }

    std::string chunks(std::string_view text) {
        std::string out = "$?\r\n";
        while (!text.empty()) {
            auto const size = 1 + below(text.size());
            out += counted(';', std::string(text.substr(0, size)));
            text.remove_prefix(size);
        }
        return out + ";0\r\n";
    }

    std::string aggregate(char type, value const& made, std::size_t per_count) {
        bool const streamed = type != '>' && below(4) == 0;
        std::string out = type + (streamed ? "?" : std::to_string(made.children.size() / per_count)) + "\r\n";
        for (auto const& child : made.children) out += encode(child);
        return streamed ? out + ".\r\n" : out;
    }

    std::string letters(std::size_t size) {
        std::string text(size, ' ');
        for (auto& letter : text) letter = static_cast<char>('a' + below(26));
        return text;
    }

    std::string bytes(std::size_t size) {
        std::string text(size, ' ');
        for (auto& byte : text) byte = below(3) == 0 ? "\r\n\0$*"[below(5)] : static_cast<char>(below(256));
        return text;
    }

    double number() {
        switch (below(8)) {
            case 0: return INFINITY;
            case 1: return -INFINITY;
            case 2: return NAN;
            case 3: return static_cast<double>(below(100));
            default: return std::normal_distribution<double>(0, 1e6)(random_);
        }
    }

    static std::string shortest(double number) {
        if (std::isnan(number)) return "nan";
        char digits[32];
        return {digits, std::to_chars(digits, digits + sizeof digits, number).ptr};
    }

    std::mt19937_64 random_;
};

/// Gives `bytes` to the parser in pieces of `sizes` (the last size repeats), each time in a buffer that has moved.
inline resp::status parse_in_pieces(resp::parser& parser, std::string_view bytes, std::vector<std::size_t> const& sizes,
                                    std::string& buffer) {
    std::size_t given = 0, piece = 0;
    auto state = resp::status::need_more;
    while (state == resp::status::need_more && given < bytes.size()) {
        given = std::min(bytes.size(), given + sizes[std::min(piece++, sizes.size() - 1)]);
        std::string moved(bytes.substr(0, given));
        buffer.swap(moved);
        std::fill(moved.begin(), moved.end(), '!');  // whoever still looks there sees it
        state = parser.parse(buffer);
    }
    return state;
}

}  // namespace lockstep::test
