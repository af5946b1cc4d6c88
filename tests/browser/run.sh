#!/bin/sh
# run.sh FILE: one file of browser tests, by the environment that CMakeLists.txt sets. Exit code 77, which ctest shows as "Skipped", where what
# it needs could not be installed; what that is stands in the output.
skip() {
    echo "skipped: $1"
    exit 77
}
packages=$(dirname "$1")
[ ! -f "$LOCKSTEP_PAGE/missing.txt" ] || skip "the dashboard's page is not part of this build: $(cat "$LOCKSTEP_PAGE/missing.txt")"
[ ! -f "$packages/missing.txt" ] || skip "playwright-core is missing: $(cat "$packages/missing.txt")"
[ -n "$LOCKSTEP_CHROMIUM" ] || skip "Chromium is not installed (Debian: chromium)"
exec "$LOCKSTEP_NODE" "$1"
