#pragma once

// Jobs that have to do with others, on their way to the server. What comes in the same turn leaves in one call, as long as that is not large. All jobs
// of one flow are added, or none; if the server finds fault with one of several flows before it writes anything, each is sent for itself.

#include "lease/shared_calls.hpp"
#include "messaging/depot.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::detail {

class job_additions final : public engine::shared_calls {
public:
    /// `types`: the key of the set of types.
    job_additions(std::shared_ptr<core> owner, std::string types) : shared_calls(std::move(owner)), types_(std::move(types)) {}

private:
    std::size_t count_together(line const& waiting) const override;
    task<void> send(engine::shared_call& what) override;

    std::string types_;
};

/// Waits until the jobs of a flow are added.
class addition final : public engine::passenger {
public:
    static constexpr std::size_t words_of_each = 6;  ///< as job_add.lua wants them

    addition(std::shared_ptr<job_additions> to, std::shared_ptr<depot> queue, std::vector<std::string> what)
        : passenger(std::move(to)), at(std::move(queue)), words(std::move(what)) {}
    ~addition() { withdraw(); }

    std::size_t count() const noexcept { return words.size() / words_of_each; }

    std::shared_ptr<depot> at;  ///< the queue of one of them
    std::vector<std::string> words;
    std::vector<std::pair<std::string, bool>> ids;  ///< of each without its type, and is it new
};

}  // namespace lockstep::detail
