#include "base/utf8.hpp"

#include <lockstep/error.hpp>
#include <lockstep/trace.hpp>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>

namespace lockstep {

std::string to_json(trace_record const& record) {
    auto const ms = std::chrono::duration_cast<std::chrono::milliseconds>(record.at.time_since_epoch()).count();
    boost::json::object out;
    auto const add = [&](std::string_view key, std::string_view text) {
        if (!text.empty()) out.emplace(key, base::as_utf8(text));
    };
    add("at", fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(record.at)), ms % 1'000));
    add("what", to_string(record.what));
    add("kind", record.kind);
    add("use", record.use);
    add("name", record.name);
    add("hold", record.hold);
    if (record.fence != 0) add("fence", std::to_string(record.fence));  // text: many readers have no integers above 2^53
    if (record.permits != 1) out.emplace("permits", record.permits);
    auto const is = [&](auto... any) { return ((record.what == any) || ...); };
    using enum trace_what;
    if (is(acquired, timed_out, cancelled, passed)) out.emplace("waited_us", record.waited.count());
    if (is(released, lost)) out.emplace("held_us", record.held.count());
    add("trace", record.trace);
    add("detail", record.detail);
    return boost::json::serialize(out);
}

trace_hook json_lines(std::string const& path) {
    auto file = std::make_shared<std::ofstream>(path, std::ios::app);
    if (!*file) throw invalid_argument_error(fmt::format("the trace file '{}' can't be opened for appending: {}", path, std::strerror(errno)));
    return [file](trace_record const& record) {
        auto const line = to_json(record) + '\n';
        file->write(line.data(), static_cast<std::streamsize>(line.size()));
        file->flush();  // a line is whole in the file or not there, also of a program that is killed
    };
}

}  // namespace lockstep
