#pragma once

// The dashboard beside something else: `lockstep demo` shows its fleet there.

#include <memory>
#include <string>

namespace lockstep::cli {

/// Looks at the server at `url` for as long as it lives, on 127.0.0.1, and only shows. In a build without the dashboard there is none.
class hosted_dashboard {
public:
    explicit hosted_dashboard(std::string const& url);
    ~hosted_dashboard();
    hosted_dashboard(hosted_dashboard const&) = delete;
    hosted_dashboard& operator=(hosted_dashboard const&) = delete;

    /// Empty when there is none.
    std::string address() const;

private:
    struct parts;
    std::unique_ptr<parts> parts_;
};

}  // namespace lockstep::cli
