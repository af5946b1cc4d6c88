#pragma once

/// Values of your own types in everything that keeps values: as JSON, by Boost.JSON.
///
///     struct order { int id; std::string customer; };
///     BOOST_DESCRIBE_STRUCT(order, (), (id, customer))       // <boost/describe.hpp>
///
///     lockstep::shared_value<order> last{client, "last-order"};
///
/// Standard containers, optionals, described structs and enums, and types with `tag_invoke` conversions work. The bodies of Boost.JSON are in
/// Lockstep's library: a program that links it needs no other.

#include <lockstep/codec.hpp>

#include <boost/describe.hpp>
#include <boost/json.hpp>

#include <string>
#include <string_view>

namespace lockstep {

template <class T>
    requires(!detail::number<T> && boost::json::has_value_from<T>::value && boost::json::has_value_to<T>::value)
struct codec<T> {
    static std::string encode(T const& value) { return boost::json::serialize(boost::json::value_from(value)); }
    static T decode(std::string_view bytes) {
        boost::system::error_code problem;
        auto const parsed = boost::json::parse({bytes.data(), bytes.size()}, problem);
        if (problem) detail::throw_not_decodable(bytes, "JSON");
        try {
            return boost::json::value_to<T>(parsed);
        } catch (std::exception const&) {
            detail::throw_not_decodable(bytes, "the JSON of this type");
        }
    }
};

}  // namespace lockstep
