// The bodies of Boost.Asio, compiled here once for the whole library. Nothing else belongs in this file: it is then an
// archive member of its own, and an embedding program that compiles Asio itself takes precedence at link time.
#include <boost/asio/impl/src.hpp>
