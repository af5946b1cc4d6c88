#include <lockstep/job_shards.hpp>

#include "base/names.hpp"
#include "redis/slot.hpp"

#include <lockstep/error.hpp>

#include <fmt/format.h>

namespace lockstep {

// Servers have ranges of slots: names whose slots are in equal parts of them are spread over the servers, whichever these are.
std::vector<std::string> shard_names(std::string_view name, std::size_t count) {
    if (count < 1 || count > 1'024) throw invalid_argument_error(fmt::format("shards of '{}': 1 to 1,024, not {}", name, count));
    std::vector<std::string> names;
    for (std::size_t shard = 0; shard != count; ++shard) {
        for (int number = 0;; ++number) {
            auto one = fmt::format("{}.{}.{}", name, shard, number);
            if (redis::crc16::of(base::encode_name(one)) % redis::slot_count * count / redis::slot_count != shard) continue;
            names.push_back(std::move(one));
            break;
        }
    }
    return names;
}

std::size_t shard_of(std::string_view key, std::size_t count) noexcept { return redis::crc16::of(key) * count >> 16; }

job_counts& operator+=(job_counts& sum, job_counts const& one) noexcept {
    for (auto const what : {&job_counts::waiting, &job_counts::delayed, &job_counts::blocked, &job_counts::running, &job_counts::completed, &job_counts::failed,
                            &job_counts::cancelled, &job_counts::ever_added, &job_counts::ever_completed, &job_counts::ever_failed, &job_counts::ever_retried,
                            &job_counts::ever_cancelled, &job_counts::dropped_completed, &job_counts::dropped_failed}) {
        sum.*what += one.*what;
    }
    sum.paused = sum.paused || one.paused;
    return sum;
}

}  // namespace lockstep
