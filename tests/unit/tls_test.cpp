#include <gtest/gtest.h>
#include <lockstep/error.hpp>

#include <string>

#include "redis/tls.hpp"

namespace lockstep::redis {
namespace {

// OpenSSL takes an empty name for a wish to verify none.
TEST(tls, refuses_a_peer_whose_name_can_not_be_verified) {
    tls_context const context{tls_options{}};
    EXPECT_THROW(tls_filter(context, ""), unavailable_error);
    EXPECT_THROW(tls_filter(context, std::string(300, 'x')), unavailable_error) << "too long for SNI";
    EXPECT_NO_THROW(tls_filter(context, "cache.example"));
    EXPECT_NO_THROW(tls_filter(context, "127.0.0.1"));
    EXPECT_NO_THROW(tls_filter(context, "::1"));
    tls_context const careless{tls_options{.dangerously_accept_any_certificate = true}};
    EXPECT_NO_THROW(tls_filter(careless, ""));
}

}  // namespace
}  // namespace lockstep::redis
