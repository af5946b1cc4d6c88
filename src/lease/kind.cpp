#include "lease/kind.hpp"

#include "scripts/all.hpp"

namespace lockstep::engine {

kind const lock_kind{.word = "lock",
                     .acquire = scripts::lock_acquire,
                     .claim = scripts::lock_claim,
                     .renew = scripts::lock_renew,
                     .release = scripts::lock_release,
                     .adopt = scripts::lock_adopt,
                     .is_pool = false};

kind const* find_kind(std::string_view word) noexcept { return word == lock_kind.word ? &lock_kind : nullptr; }

}  // namespace lockstep::engine
