// The page, as it was bundled at build time (page/bundle.mjs, cmake/bundle_page.cmake).
#pragma once

#include <span>
#include <string_view>

namespace lockstep::dashboard {

struct asset {
    std::string_view path;  // "/", "/assets/app-3F2A.js"
    std::string_view type;  // its Content-Type
    std::string_view etag;  // with its quotes
    bool lasting;           // its path changes with its content
    std::string_view content;
};

std::span<asset const> assets();
std::string_view missing_page_reason();  // why this build has no page and no assets; empty: it has

}  // namespace lockstep::dashboard
