// The bodies of Boost.Beast, compiled here once.
#include <boost/beast/src.hpp>
