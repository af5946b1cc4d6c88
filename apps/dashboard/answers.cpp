#include "dashboard/answers.hpp"

#include "dashboard/text.hpp"

#include <lockstep/error.hpp>

namespace lockstep::dashboard {

namespace {

namespace json = boost::json;

void make_readable(json::value& value) {
    if (auto* const text = value.if_string()) {
        if (!is_utf8(*text)) *text = readable(*text);
    } else if (auto* const list = value.if_array()) {
        for (auto& one : *list) make_readable(one);
    } else if (auto* const members = value.if_object()) {
        for (auto& [key, one] : *members) make_readable(one);
    }
}

}  // namespace

response as_response(json::value value) {
    make_readable(value);
    return {.body = json::serialize(value)};
}

response of_failure(std::exception const& failure) {
    bool const not_held = dynamic_cast<not_held_error const*>(&failure) != nullptr;
    bool const argument = dynamic_cast<invalid_argument_error const*>(&failure) != nullptr;
    return refusal(not_held ? 409 : argument ? 400 : 503, readable(failure.what()));
}

std::string member(json::object const& of, std::string_view name) {
    auto const* const found = of.if_contains(name);
    return found != nullptr && found->is_string() ? std::string{found->get_string()} : std::string{};
}

std::string name_in(json::object const& order) {
    auto const raw = percent_decoded(member(order, "raw"));
    return raw && !raw->empty() ? *raw : member(order, "name");
}

}  // namespace lockstep::dashboard
