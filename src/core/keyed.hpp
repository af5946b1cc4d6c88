#pragma once

// What every object has that is kept at the server and is no lease: its client, its name, its keys (all in one slot), and the requests on them.

#include "core/core.hpp"
#include "core/object_index.hpp"
#include "scripts/script.hpp"

#include <lockstep/client.hpp>
#include <lockstep/key.hpp>
#include <lockstep/request.hpp>
#include <lockstep/task.hpp>

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::detail {

class keyed {
public:
    /// `kind`: the last part of its key, a word of ours. Throws `invalid_argument_error` for a name that is not allowed.
    keyed(client& by, std::string_view name, std::string_view kind);
    keyed(std::shared_ptr<core> owner, std::string_view name, std::string_view kind);
    /// An object at a key that is not of our making; its other keys are ours. Its name is that key. Throws `invalid_argument_error` for one that is not allowed.
    static keyed at_key(client& by, lockstep::key const& at, std::string_view kind);
    /// An object that belongs to this one, at `key_of(part)`.
    keyed part(std::string_view part) const;

    std::shared_ptr<core> const& owner() const noexcept { return owner_; }
    std::string const& name() const noexcept { return name_; }
    std::string const& kind() const noexcept { return kind_; }
    std::string const& key() const noexcept { return key_; }
    /// Another key of the same object: `<key>:<part>`, or as <lockstep/key.hpp> says.
    std::string key_of(std::string_view part) const { return (helpers_.empty() ? key_ : helpers_) + ':' + std::string{part}; }
    std::int16_t slot() const noexcept { return slot_; }

    /// A script on these keys. An answer that begins with LOCKSTEP_ARGUMENT is thrown as `invalid_argument_error`, another error as `server_error`;
    /// both name the object. `once`: it must not be sent again when its reply is lost (then `indeterminate_error`).
    struct terms {
        std::chrono::milliseconds within{0};  ///< 0: the client's `command_timeout`
        bool once = false;
        bool yields = false;  ///< as in redis::command_terms
    };
    task<reply> run(scripts::script const& script, std::span<std::string_view const> keys, std::span<argument const> words, terms how) const;
    /// On the object's own key.
    task<reply> run(scripts::script const& script, std::initializer_list<argument> words) const;
    /// A plain command, which may be sent again. Its key, if any, must be one of this object's.
    task<reply> command(std::span<argument const> words, terms how) const;
    task<reply> command(std::initializer_list<argument> words) const;

    /// Throws in a child made by fork(), or where a blocking form must not be called.
    void require_usable() const;
    void require_blocking() const;

    /// It was used: monitors list it. One that has no key of its own is listed for so long, as `{<name>}:<word>`.
    void note_use(std::string_view word, std::chrono::milliseconds listed_for) const noexcept;

private:
    enum class listing : std::uint8_t { none, by_key, by_period, as_jobs };
    static listing listing_of(std::string_view kind) noexcept;
    void note(std::span<std::string_view const> keys) const noexcept;

    std::shared_ptr<core> owner_;
    std::string name_;
    std::string kind_;
    std::string key_;
    std::string helpers_;  // what its other keys begin with, where that is not its own
    std::int16_t slot_;
    listing listing_;
    mutable object_index::mark noted_;
};

}  // namespace lockstep::detail
