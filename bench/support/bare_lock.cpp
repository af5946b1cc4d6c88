#include "support/bare_lock.hpp"

#include "scripts/all.hpp"

#include <fmt/core.h>

namespace lockstep::bench {

std::string lock_key(std::size_t index) { return fmt::format("lock:{:012}", index); }

worker lock_and_unlock(load& work, client& through, std::size_t index) {
    auto const name = lock_key(index);
    while (work.take()) {
        auto const taken = co_await through.async_command("SET", name, token, "NX", "PX", 30000);
        load::expect(taken.is_text());
        auto const released =
            co_await through.async_command("EVALSHA", scripts::compare_and_delete.sha1, 1, name, token);
        load::expect(released.integer() == 1);
    }
}

}  // namespace lockstep::bench
