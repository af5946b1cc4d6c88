#!/bin/sh
# cmake/ccache.sh CCACHE COMPILER ARGUMENT...: the compiler launcher. All but precompiled headers go through ccache: g++ recognises a header with
# `#pragma once` by its modification time, so one that was precompiled in an older checkout of the same folder would be included again.
ccache=$1
shift
case " $* " in
    *" c++-header "*) exec "$@" ;;
esac
# Without this sloppiness ccache refuses files that use a precompiled header.
CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime exec "$ccache" "$@"
