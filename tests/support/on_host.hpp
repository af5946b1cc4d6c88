// Several machines in one process: while this object lives, gethostname() says this name to the thread that made it.
//
//     auto const of = [&](client& by, char const* host) {
//         on_host const there{host};
//         return circuit_breaker{by, "name", how};
//     };
#pragma once

#include <string>

namespace lockstep::test {

class on_host {
public:
    explicit on_host(std::string name);
    on_host(on_host const&) = delete;
    on_host& operator=(on_host const&) = delete;
    ~on_host();
};

}  // namespace lockstep::test
