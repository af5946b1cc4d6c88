// Texts that stand for something that is held, and come back from other programs: tokens of detached leases, ids of jobs. Whatever the text is:
//   - it is read, or refused with an invalid_argument_error;
//   - what was read says the same when it is written and read again.

#include "jobs/job_text.hpp"
#include "lease/token.hpp"

#include "support/fuzz.hpp"

namespace {

using namespace lockstep;
using fuzz::require;

void check_lease_token(std::string_view text) {
    try {
        auto const token = engine::read_token(text);
        auto const again = engine::read_token(engine::write_token(token));
        require(token.kind == again.kind && token.hold == again.hold && token.ttl == again.ttl && token.retention == again.retention && token.name == again.name,
                "a token is written as it was read", text);
        require(!token.hold.empty() && !token.name.empty(), "a token names a hold", text);
    } catch (invalid_argument_error const&) {
    }
}

void check_job_id(std::string_view text) {
    try {
        auto const name = detail::read_job_name(text);
        require(name.type + '/' + name.id == text, "the id of a job is its type and its number", text);
    } catch (invalid_argument_error const&) {
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    fuzz::exact_copy const copy{fuzz::text_of(data, size)};
    check_lease_token(copy.view());
    check_lease_token(std::string{"lockstep-lease-1 lock "}.append(copy.view()));
    check_job_id(copy.view());
    check_job_id(std::string{"mail/"}.append(copy.view()));
    return 0;
}
