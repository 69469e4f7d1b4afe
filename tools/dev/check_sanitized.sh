#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Builds everything with AddressSanitizer and UndefinedBehaviorSanitizer (build/asan), then runs
# lit, the gtests and generated kernels with it. Without a compiler cache the build is half an hour's
# work for a core; CI is to run this each night (.github/workflows/sanitizers.yml).
#
# Usage: tools/dev/check_sanitized.sh [--count N]     N: generated kernels (400)
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

count=400
while [ $# -gt 0 ]; do
  case "$1" in
    --count) count="${2:?--count wants a number}"; shift 2 ;;
    --help) sed -n '4,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) die "unknown option $1" ;;
  esac
done

# The run-time libraries of the sanitizers are a package of their own.
ensure_system libclang-rt-22-dev
ensure_venv numpy ml_dtypes
ensure_ptxas
# Not `build` of setup.sh, which would have Python load the sanitized library from now on.
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
if [ ! -f "$ROOT/build/asan/build.ninja" ]; then
  arguments=(--preset asan -DPython3_EXECUTABLE="$VENV/bin/python")
  [ -n "${MLIR_DIR:-}" ] && arguments+=(-DMLIR_DIR="$MLIR_DIR")
  (cd "$ROOT" && cmake "${arguments[@]}")
fi
cmake --build "$ROOT/build/asan" --target all tessera_python TesseraUnitTests

# LLVM itself is not instrumented, so its containers and arenas look wrong where they are not.
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_container_overflow=0:allow_user_poisoning=0:detect_leaks=0}"
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1:halt_on_error=1}"
export PATH="$VENV/bin:/usr/lib/llvm-22/bin:$PATH"
say "lit and gtest, sanitized"
lit -s -v "$ROOT/build/asan/test"
say "$count generated kernels, sanitized"
"$ROOT/tools/dev/run_sanitized.sh" -m tessera.testing.fuzz --kind both --count "$count"
say "no sanitizer reported anything"
