#include "lease/answer.hpp"

#include <array>
#include <utility>

namespace lockstep::engine {
namespace {

word word_of(std::string_view text) {
    constexpr std::array<std::pair<std::string_view, word>, 10> words{{{"granted", word::granted},
                                                                      {"queued", word::queued},
                                                                      {"busy", word::busy},
                                                                      {"late", word::late},
                                                                      {"gone", word::gone},
                                                                      {"renewed", word::renewed},
                                                                      {"older", word::older},
                                                                      {"released", word::released},
                                                                      {"cancelled", word::cancelled},
                                                                      {"changed", word::changed}}};
    for (auto const& [name, what] : words) {
        if (name == text) return what;
    }
    return word::unknown;
}

}  // namespace

answer read_answer(reply_view said, std::int64_t asked_ttl_ms, std::int64_t asked_fences) {
    answer found;
    if (said.type() == reply_type::integer) {
        if (said.integer() == 1) {
            found.what = word::released;
            return found;
        }
        found.what = word::granted;
        found.fence = said.integer();
        found.fences = asked_fences;
        found.left_ms = asked_ttl_ms;
        found.now_ms = said.integer() / 1000;
        return found;
    }
    if (said.size() < 2) return found;
    auto at = said.begin();
    found.what = word_of((*at++).text());
    auto const next = [&] { return (*at++).integer(); };
    switch (found.what) {
        case word::granted: found.fence = next(), found.fences = next(), found.left_ms = next(), found.now_ms = next(); break;
        case word::changed: found.fence = next(), found.left_ms = next(), found.now_ms = next(); break;
        case word::queued:
            next();  // its position, for people
            found.left_ms = next(), found.now_ms = next(), found.is_new = next() == 1, found.asks_again = found.left_ms == 0;
            break;
        case word::busy: found.left_ms = next(), found.now_ms = next(), found.asks_again = found.left_ms == 0; break;
        case word::renewed:
        case word::older: found.left_ms = next(), found.now_ms = next(); break;
        case word::released:
        case word::gone:
        case word::cancelled:
            found.now_ms = next();
            if (said.size() > 2) found.offered_to = (*at++).text();
            if (said.size() > 4) next(), found.asks_again = next() == 1;  // behind how many heard of the offer
            break;
        case word::late: found.now_ms = next(); break;
        case word::unknown: break;
    }
    return found;
}

}  // namespace lockstep::engine
