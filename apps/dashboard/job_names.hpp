// Which names have jobs or schedules: looked for in the index that clients keep, beside whoever asks.
//
// In small steps, one search at a time, at most every other second and a twentieth of the time; and only when somebody asks. From any thread.
#pragma once

#include <lockstep/client.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::dashboard {

struct found_names {
    std::vector<std::string> names;  // in order
    std::size_t left_out = 0;        // beyond so many
};

class job_names {
public:
    job_names(client& by, std::size_t most);

    // Those that were found last; a search begins if it is time for one, and nobody waits for that. Only before the first was done it waits, until
    // two seconds after that began: then it throws unavailable_error. Where nothing is known, it throws what went wrong.
    std::shared_ptr<found_names const> last();

private:
    struct search;

    client& client_;
    std::size_t most_;
    std::shared_ptr<search> search_;  // it may end later than this
};

}  // namespace lockstep::dashboard
