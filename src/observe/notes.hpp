#pragma once

// What a look could not read, for people: one line for each key. Any thread.

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::observe {

class notes {
public:
    void add(std::string_view key, std::string_view problem);
    std::vector<std::string> list() const;

private:
    static constexpr std::size_t most = 50;  // of those beyond, only that there are some is told

    mutable std::mutex mutex_;
    std::map<std::string, std::string, std::less<>> problems_;
    bool others_ = false;
};

/// Those of a monitor's latest call.
class latest_notes {
public:
    std::shared_ptr<notes> begin() {
        auto fresh = std::make_shared<notes>();
        std::lock_guard const guard{mutex_};
        return latest_ = std::move(fresh);
    }
    std::vector<std::string> list() const {
        std::unique_lock guard{mutex_};
        auto const current = latest_;
        guard.unlock();
        return current ? current->list() : std::vector<std::string>{};
    }

private:
    mutable std::mutex mutex_;
    std::shared_ptr<notes> latest_;
};

}  // namespace lockstep::observe
