// Names of objects, clients, jobs and schedules. Whatever the text is:
//   - a name has one encoding, which gives the name again, and no key made of it has other braces than those of its hash tag;
//   - what is refused is refused with an invalid_argument_error.

#include "base/names.hpp"
#include "jobs/cron_text.hpp"
#include "jobs/job_text.hpp"
#include "redis/handshake.hpp"
#include "redis/slot.hpp"

#include "support/fuzz.hpp"

#include <algorithm>

namespace {

using namespace lockstep;
using fuzz::require;

void check_key(std::string_view prefix, std::string_view name) {
    try {
        auto const key = base::key_name(prefix, name, "lock");
        auto const encoded = base::encode_name(name);
        require(base::decode_name(encoded) == name, "an encoded name is decoded to the same", name);
        require(std::ranges::count(key, '{') == 1 && std::ranges::count(key, '}') == 1, "a key has one pair of braces", key);
        require(std::ranges::none_of(key, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }), "a key has no control characters", key);
        require(key.substr(key.find('{') + 1, encoded.size()) == encoded, "the tag is the name", key);
        require(redis::key_slot(key) == redis::key_slot(encoded), "all keys of a name are in one slot", key);
    } catch (invalid_argument_error const&) {
        require(name.empty() || name.size() > base::max_name_bytes || !fuzz::succeeds([&] { base::check_prefix(prefix); }), "only bad names are refused", name);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    fuzz::exact_copy const copy{fuzz::text_of(data, size)};
    auto name = copy.view();
    check_key("p", name);
    if (auto const decoded = base::decode_name(name)) require(base::encode_name(*decoded) == name, "a name has one encoding", name);
    for (char const c : redis::clean_client_name(std::string{name})) require(c > ' ' && c <= '~', "a client's name is printable", name);
    fuzz::succeeds([&] { detail::check_job_type(name); });
    fuzz::succeeds([&] { detail::check_tag(name); });
    fuzz::succeeds([&] { detail::check_batch(name); });
    fuzz::succeeds([&] { detail::check_cron_id(name); });
    auto const prefix = fuzz::take_line(name);
    check_key(prefix, name);
    return 0;
}
