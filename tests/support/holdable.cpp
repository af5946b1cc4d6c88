#include "holdable.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <stdexcept>

namespace lockstep::test {

namespace {

struct description {
    kind what;
    std::string_view name;
    std::string_view key;
};

constexpr std::array descriptions{
    description{kind::mutex, "mutex", "lock"},
    description{kind::recursive_mutex, "recursive_mutex", "recursive"},
    description{kind::writer, "writer", "shared"},
    description{kind::reader, "reader", "shared"},
    description{kind::permits, "permits", "semaphore"},
    description{kind::one_permit, "one_permit", "semaphore"},
};

description const& description_of(kind what) { return descriptions.at(static_cast<std::size_t>(what)); }

std::string new_owner() {
    static std::atomic<int> count{0};
    return "owner-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
}

}  // namespace

holdable::any holdable::make(kind what, client& by, std::string_view name, lease_options const& options) {
    switch (what) {
        case kind::mutex: return lockstep::mutex{by, name, options};
        case kind::recursive_mutex: return lockstep::recursive_mutex{by, name, options}.as(new_owner());
        case kind::writer: return shared_mutex{by, name, options};
        case kind::reader: return reading{shared_mutex{by, name, options}};
        case kind::permits:
        case kind::one_permit: break;
    }
    return permits{counting_semaphore::create(by, name, 3, {.lease = options}), what == kind::permits ? 2 : 1};
}

holdable::holdable(kind what, client& by, std::string_view name, lease_options const& options)
    : of_{make(what, by, name, options)} {}

std::string name_of(kind what) { return std::string{description_of(what).name}; }

kind kind_called(std::string_view name) {
    for (auto const& one : descriptions) {
        if (one.name == name) return one.what;
    }
    throw std::invalid_argument{"there is no kind " + std::string{name}};
}

std::string key_of(kind what, std::string_view name) {
    return "lockstep:{" + std::string{name} + "}:" + std::string{description_of(what).key};
}

}  // namespace lockstep::test
