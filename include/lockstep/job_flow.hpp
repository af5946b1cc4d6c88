#pragma once

/// `job_flow`: jobs that wait for one another, to be added at once with `job_client::add_flow`.
///
///     lockstep::job_flow flow;
///     flow.add("orders", "fetch", std::string{"orders"});
///     flow.add("prices", "fetch", std::string{"prices"});
///     flow.add("report", "report", std::string{"2026-11"}, {.on_parent_failure = lockstep::parent_failure::skip});
///     flow.after("report", {"orders", "prices"});
///     auto ids = jobs.add_flow(flow);
///     auto end = jobs.wait(ids.at("report"), 1min);
///
/// Each has a name here, which says nothing outside of the flow; a parent may also be the id of a job that exists. Any graph without a cycle, of up to 20,000
/// jobs and 200,000 links.
///
/// Failure: `add` throws `invalid_argument_error` for a name that is there already and for options out of range, `add_flow` for names that are not there and for
/// a cycle, which it names.
/// Threads: an object is used by one at a time.

#include <lockstep/codec.hpp>
#include <lockstep/job_options.hpp>

#include <cstddef>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

class job_flow {
public:
    /// A name is 1 to 512 bytes, without a slash. Delay and time count from when its parents have completed. A key cannot be given.
    template <class T, codec_for<T> Codec = codec<T>>
    job_flow& add(std::string_view name, std::string_view type, T const& payload, job_options const& how = {}) {
        return add_bytes(name, type, Codec::encode(payload), how);
    }
    /// `child` is run after `parent`: a name, or the id of a job that exists.
    job_flow& after(std::string_view child, std::string_view parent);
    job_flow& after(std::string_view child, std::initializer_list<std::string_view> parents);

    std::size_t size() const noexcept { return nodes_.size(); }

    // What is added, for `job_client`.
    struct node {
        std::string name;
        std::string type;
        std::string place;
        std::string single;
        std::string batch;
        std::string payload;
        std::vector<std::string> parents{};
    };
    /// With parents as the script wants them. Throws `invalid_argument_error` as above.
    std::vector<node> checked() const;

private:
    job_flow& add_bytes(std::string_view name, std::string_view type, std::string payload, job_options const& how);

    std::vector<node> nodes_;
    std::map<std::string, std::size_t, std::less<>> names_;
    std::vector<std::pair<std::string, std::string>> links_;  // child, parent
};

}  // namespace lockstep
