// The bodies of Boost.Beast and of Asio's TLS, compiled here once.
#include <boost/asio/ssl/impl/src.hpp>
#include <boost/beast/src.hpp>
