#pragma once

// The dashboard beside something else: `lockstep demo` shows its fleet there.

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

namespace lockstep::cli {

/// Looks at the server at `url` for as long as it lives, on 127.0.0.1, and only shows. In a build without the page there is none.
class hosted_dashboard {
public:
    /// The link can be used for so long.
    static constexpr std::chrono::minutes link_lifetime{5};

    explicit hosted_dashboard(std::string const& url);
    ~hosted_dashboard();
    hosted_dashboard(hosted_dashboard const&) = delete;
    hosted_dashboard& operator=(hosted_dashboard const&) = delete;

    /// Logs in, once. Empty when there is no page; then missing_reason() says why.
    std::string link() const;
    /// Logs in always; made for this page.
    std::string token() const;
    static std::string missing_reason();

private:
    struct parts;
    std::unique_ptr<parts> parts_;
};

/// Throws the failure that `lockstep dashboard` ends with where the build has no page, for this reason; does nothing if the reason is empty.
void require_page(std::string_view missing_reason);

}  // namespace lockstep::cli
