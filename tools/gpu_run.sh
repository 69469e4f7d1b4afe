#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Runs on a machine with a GPU what tools/gpu_bundle has packed: installs the wheel aside,
# launches one kernel, then runs the tests and the benchmarks. Logs and JSON go to $OUT, a
# short table is printed last. Exits with 0 only if all that was asked for went well.
#
# Usage: tools/gpu_run.sh [step...]     (default: smoke tests bench)
#   smoke, sanitize        a few kernels, as they are and under compute-sanitizer
#   tests, pytorch         the tests; those of torch.compile     TESTS="-k softmax": more arguments
#   bench, matmul, backward, models, optimize
#                          python/benchmarks: gpu.py, gpu_matmul.py, attention_backward.py, and
#                          torch_models.py with its two suites
#   operators              torch's samples of its operators, DTYPES (float32) in SLICES (14) parts
# More arguments of a benchmark are in the variable of its name in capitals, e.g.
# BENCH="--only softmax"; each may take LIMIT seconds (400). What it has measured by then is kept.
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
OUT=${OUT:-/tmp/gpu_out}
SITE=/tmp/site
mkdir -p "$OUT"
steps=("$@")
[ ${#steps[@]} -gt 0 ] || steps=(smoke tests bench)

# The wheel is one archive of files that need no building, so it is only unpacked.
rm -rf "$SITE"
mkdir -p "$SITE"
python3 - "$SITE" <<'UNPACK' || exit 1
import glob, lzma, os, sys, zipfile
(wheel,) = glob.glob(".gpu/*.whl")
zipfile.ZipFile(wheel).extractall(sys.argv[1])
if not os.path.exists("/tmp/ptxas"):
    with open("/tmp/ptxas", "wb") as file:
        file.write(lzma.open(".gpu/ptxas.xz").read())
    os.chmod("/tmp/ptxas", 0o755)
UNPACK
# The tests put the checkout's own package first, which here lacks the built parts.
ln -sfn "$SITE"/tessera/*.so* python/tessera/
export PYTHONPATH="$SITE" PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
export TESSERA_PTXAS=/tmp/ptxas TESSERA_LIBDEVICE="$PWD/.gpu/libdevice.10.bc"
export TESSERA_CACHE_DIR=/tmp/tessera-cache
{
  date -u
  nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,power.draw,temperature.gpu --format=csv
  python3 --version
  /tmp/ptxas --version | tail -1
  python3 -c 'import torch, triton, numpy; print("torch", torch.__version__, "triton", triton.__version__, "numpy", numpy.__version__)'
} >"$OUT/machine.txt" 2>&1

smoke() { python3 python/test/gpu/smoke.py; }

tests() {
  # The processes share the GPU; one that a faulty kernel has ruined is replaced.
  # shellcheck disable=SC2086
  timeout 420 python3 -m pytest python/test/execution python/test/gpu python/test/runtime/test_cuda_arguments.py \
    python/test/docs/test_tutorial.py \
    -q -k "cuda or gpu" -n 12 --max-worker-restart 400 -p no:cacheprovider --tb=short ${TESTS:-}
}

pytorch() {
  # shellcheck disable=SC2086
  timeout 200 python3 -m pytest python/test/pytorch -q -n 6 -p no:cacheprovider --tb=short ${TESTS:-}
}

# measure NAME SCRIPT [arguments...]
measure() {
  local name=$1 script=$2
  shift 2
  timeout "${LIMIT:-400}" python3 "python/benchmarks/$script" --json "$OUT/$name.json" "$@"
}

# shellcheck disable=SC2086
bench() { measure gpu gpu.py ${BENCH:-}; }
# shellcheck disable=SC2086
matmul() { measure gpu_matmul gpu_matmul.py ${MATMUL:-}; }
# shellcheck disable=SC2086
backward() { measure attention_backward attention_backward.py ${BACKWARD:-}; }

# Cases compile side by side, and none is begun that would not end in time.
# shellcheck disable=SC2086
models() {
  measure models torch_models.py --jobs 5 --budget $((${LIMIT:-400} - 20)) --limit 200 ${MODELS:-}
}
# shellcheck disable=SC2086
optimize() {
  measure optimize torch_models.py --suite optimize --backends tessera --jobs 5 \
    --budget $((${LIMIT:-400} - 20)) --limit 200 ${OPTIMIZE:-}
}

# torch's testing package asks for the package expecttest, which has to come along. Few files come
# back from that machine.
operators() {
  local slices=${SLICES:-14} kept=/tmp/operators slice
  mkdir -p "$kept"
  for ((slice = 1; slice <= slices; ++slice)); do
    # shellcheck disable=SC2086
    TORCHINDUCTOR_COMPILE_THREADS=1 timeout "${LIMIT:-400}" python3 tools/dev/torch_operators.py \
      --device cuda --samples 1 --dtypes "${DTYPES:-float32}" --slice "$slice/$slices" \
      --json "$kept/$slice.json" ${OPERATORS:-} >"$kept/$slice.log" 2>&1 &
  done
  wait
  tar -czf "$OUT/operators.tgz" -C "$kept" .
  grep -hE "wrong|failed" "$kept"/*.log
  tail -qn 1 "$kept"/*.log
}

sanitize() {
  for tool in memcheck racecheck; do
    timeout 200 compute-sanitizer --tool "$tool" --error-exitcode 9 python3 python/test/gpu/smoke.py || return 1
  done
}

failed=0
summary=()
for step in "${steps[@]}"; do
  start=$SECONDS
  "$step" >"$OUT/$step.log" 2>&1
  status=$?
  [ $status -eq 0 ] || failed=1
  summary+=("$(printf '%-9s exit %-3s %4ss  %s' "$step" "$status" $((SECONDS - start)) "$(tail -1 "$OUT/$step.log" | cut -c1-150)")")
  # What a reader of the terminal wants to see of a step.
  case $step in
    smoke | sanitize) tail -25 "$OUT/$step.log" ;;
    tests | pytorch) grep -E "^(FAILED|ERROR)" "$OUT/$step.log" | cut -c1-170 | head -40 ;;
    *) tail -70 "$OUT/$step.log" ;;
  esac
done
cat "$OUT/machine.txt"
printf '%s\n' "${summary[@]}"
exit $failed
