#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Runs Python with the library of build/asan: tools/dev/run_sanitized.sh -m tessera.testing.fuzz ...
# With TESSERA_BUILD=build/dev it is that build's: what the sanitizer sees then is memory that is
# freed twice, or wrongly, and what goes wrong in functions of the C library.
#
# The package is a folder of links in the build's, so that the source tree keeps the library of
# another build. The sanitizer has to be there before Python starts.
set -eu
root="$(cd "$(dirname "$0")/../.." && pwd)"
build="$root/${TESSERA_BUILD:-build/asan}"
package="$build/sanitized/tessera"
mkdir -p "$package"
for entry in "$root"/python/tessera/*; do
  ln -sfn "$entry" "$package/$(basename "$entry")"
done
for library in "$build"/lib/libtessera.so "$build"/lib/_C.*.so; do
  ln -sfn "$library" "$package/$(basename "$library")"
done
export PYTHONPATH="$build/sanitized" TESSERA_CACHE=off PYTHONMALLOC=malloc
: "${ASAN_OPTIONS:=detect_container_overflow=0:allow_user_poisoning=0:detect_leaks=0}"
export ASAN_OPTIONS UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}"
# libstdc++ too: a sanitizer that is there before it cannot find what throws.
LD_PRELOAD="$(clang-22 -print-file-name=libclang_rt.asan-x86_64.so) $(clang++-22 -print-file-name=libstdc++.so.6)" \
  exec "${PYTHON:-python3}" "$@"
