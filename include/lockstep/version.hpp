#pragma once

/// The version of these headers. CMake reads it from here.
///
///     #if LOCKSTEP_VERSION >= 200  // 0.2.0 or newer

#define LOCKSTEP_VERSION_MAJOR 0
#define LOCKSTEP_VERSION_MINOR 1
#define LOCKSTEP_VERSION_PATCH 0

/// Comparable: two digits each for the minor version and the patch.
#define LOCKSTEP_VERSION (LOCKSTEP_VERSION_MAJOR * 10000 + LOCKSTEP_VERSION_MINOR * 100 + LOCKSTEP_VERSION_PATCH)

#define LOCKSTEP_DETAIL_QUOTE(text) #text
#define LOCKSTEP_DETAIL_VERSION_STRING(major, minor, patch) \
    LOCKSTEP_DETAIL_QUOTE(major) "." LOCKSTEP_DETAIL_QUOTE(minor) "." LOCKSTEP_DETAIL_QUOTE(patch)

/// A string literal, for example "0.1.0".
#define LOCKSTEP_VERSION_STRING \
    LOCKSTEP_DETAIL_VERSION_STRING(LOCKSTEP_VERSION_MAJOR, LOCKSTEP_VERSION_MINOR, LOCKSTEP_VERSION_PATCH)
