// What other clients have stored in queues, jobs and schedules, and what scripts answer about it. The first byte of the input chooses, the rest is the
// text, or replies of the server. Whatever it is:
//   - it is read, or refused with a lockstep::error;
//   - what points into the text lies in it.

#include "jobs/cron_text.hpp"
#include "jobs/job_text.hpp"
#include "messaging/queue_wire.hpp"
#include "resp/parser.hpp"

#include "support/fuzz.hpp"

#include <functional>
#include <vector>

namespace {

using namespace lockstep;
using fuzz::require;

void inside(std::string_view part, std::string_view whole) {
    if (part.empty()) return;
    std::less_equal<> const before;
    require(before(whole.data(), part.data()) && before(part.data() + part.size(), whole.data() + whole.size()), "a piece lies in its text", whole);
}

void read_text(std::size_t choice, std::string_view text) {
    switch (choice) {
        case 0: {
            auto const entry = detail::read_entry(text);
            inside(entry.id, text);
            inside(entry.payload, text);
            break;
        }
        case 1: static_cast<void>(detail::read_large_entry(text)); break;
        case 2: {
            auto const offer = detail::read_offer(text);
            inside(offer.token, text);
            static_cast<void>(detail::read_entry(offer.entry));
            break;
        }
        case 3: {
            auto const delivery = detail::read_delivery(text);
            inside(delivery.record.payload, text);
            inside(delivery.record.cron, text);
            auto const pause = delivery.record.terms.pause(delivery.failures);
            require(pause.count() >= 0 && pause <= std::max(delivery.record.terms.max_backoff, std::chrono::milliseconds{0}), "a pause is in range", text);
            break;
        }
        case 4: inside(detail::read_record(text).payload, text); break;
        case 5: static_cast<void>(detail::read_end(text)); break;
        case 6: static_cast<void>(detail::last_reason(text)); break;
        case 7: {
            auto rest = text;
            auto const last = fuzz::take_line(rest);
            static_cast<void>(detail::read_cron("nightly", 1, rest, last));
            break;
        }
        case 8: inside(detail::read_cron_head(text).expression, text); break;
        default: static_cast<void>(detail::read_state(text));
    }
}

void read_reply(std::size_t choice, reply_view answer) {
    switch (choice) {
        case 10: static_cast<void>(detail::read_push_answer(answer)); break;
        case 11: static_cast<void>(detail::read_pull_answer(answer, false)); break;
        case 12: static_cast<void>(detail::read_pull_answer(answer, true)); break;
        case 13: static_cast<void>(detail::read_once_answer(answer)); break;
        case 14: static_cast<void>(detail::read_job("mail", "1", answer)); break;
        default: static_cast<void>(detail::read_flow_job(answer));
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    fuzz::exact_copy const copy{fuzz::text_of(data, size)};
    auto input = copy.view();
    auto const choice = fuzz::take_choice(input, 16);
    if (choice < 10) {
        fuzz::succeeds([&] { read_text(choice, input); });
        return 0;
    }
    resp::parser parser{{.max_bulk = 4096, .max_elements = 4096, .max_depth = 16, .max_message = 16384, .max_line = 4096}};
    if (parser.parse(input) == resp::status::ready) fuzz::succeeds([&] { read_reply(choice, parser.message()); });
    return 0;
}
