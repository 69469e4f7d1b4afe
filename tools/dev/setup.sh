# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# shellcheck shell=bash
#
# The set-up that tools/demo, tools/check, tools/bench and tools/wheel share: system
# packages, a virtual environment, a build. Sourced, not run. Everything here is done
# once and found done the next time.

set -euo pipefail
ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
VENV="${TESSERA_VENV:-$ROOT/.venv}"
: "${PYTHON:=python3}"

say() { printf '\033[1m== %s\033[0m\n' "$*" >&2; }
die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# The Debian packages that a build needs. With MLIR_DIR set, LLVM and MLIR are the
# user's own (any 22.1) and are not asked for.
system_packages() {
  local packages=(clang-22 lld-22 ccache cmake ninja-build pybind11-dev libgtest-dev libgmock-dev
    libzstd-dev zlib1g-dev libedit-dev libcurl4-openssl-dev libxml2-dev)
  if [ -z "${MLIR_DIR:-}" ]; then
    packages+=(libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools)
  fi
  if ! "$PYTHON" -c 'import sysconfig, pathlib, sys; sys.exit(not (pathlib.Path(sysconfig.get_path("include")) / "Python.h").exists())'; then
    packages+=(python3-dev)
  fi
  if ! "$PYTHON" -c 'import ensurepip' 2>/dev/null; then
    packages+=(python3-venv)
  fi
  printf '%s\n' "${packages[@]}" "$@"
}

# ensure_system [extra packages...]: installs what is missing as root or with sudo;
# otherwise names it and stops.
ensure_system() {
  command -v "$PYTHON" >/dev/null || die "no $PYTHON; Tessera needs Python 3.10 or newer"
  "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    die "$("$PYTHON" --version) is too old; Tessera needs Python 3.10 or newer (set PYTHON to choose one)"
  local missing=() package
  while read -r package; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' ||
      missing+=("$package")
  done < <(system_packages "$@")
  [ ${#missing[@]} -eq 0 ] && return
  local run=()
  if [ "$(id -u)" -ne 0 ]; then
    if sudo -n true 2>/dev/null; then run=(sudo); else
      die "missing system packages: ${missing[*]}
  install them with: sudo apt-get install ${missing[*]}"
    fi
  fi
  say "installing ${#missing[@]} system packages: ${missing[*]}"
  local log="$ROOT/build/apt.log"
  mkdir -p "$ROOT/build"
  if ! { "${run[@]}" apt-get update -q && DEBIAN_FRONTEND=noninteractive "${run[@]}" apt-get install -y -q "${missing[@]}"; } >"$log" 2>&1; then
    tail -n 15 "$log" >&2
    die "apt-get failed; the whole log is $log"
  fi
}

# ensure_venv packages...: a virtual environment that also sees the system's Python
# packages (somebody's own torch), with the given ones.
ensure_venv() {
  if [ ! -x "$VENV/bin/python" ]; then
    say "making the virtual environment $VENV"
    "$PYTHON" -m venv --system-site-packages "$VENV"
  fi
  local wanted="$*" stamp="$VENV/.tessera-packages"
  local package
  for package in "$@"; do
    if ! grep -qxF "$package" "$stamp" 2>/dev/null; then
      say "installing Python packages: $wanted"
      "$VENV/bin/python" -m pip install -q --disable-pip-version-check "$@"
      printf '%s\n' "$@" >>"$stamp"
      break
    fi
  done
}

# ensure_site_packages: what tools/site builds the documentation with, for Python 3.11 and newer.
# Pinned, since a warning of another version would be an error.
ensure_site_packages() {
  "$VENV/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    say "the site of the documentation needs Python 3.11, and is left out"
    return 0
  }
  ensure_venv sphinx==9.0.4 myst-parser==5.2.0 furo==2025.12.19 sphinx-design==0.8.0 \
    sphinx-copybutton==0.5.2
}

# ensure_torch: torch's CPU build, never the one of the package index, which brings
# gigabytes of CUDA with it.
ensure_torch() {
  local version=2.13.0+cpu
  "$VENV/bin/python" -c "import torch, sys; sys.exit(torch.__version__ != '$version')" 2>/dev/null &&
    return
  say "installing torch $version"
  "$VENV/bin/python" -m pip install -q --disable-pip-version-check "torch==$version" 2>/dev/null ||
    "$VENV/bin/python" -m pip install -q --disable-pip-version-check "torch==$version" \
      --extra-index-url https://download.pytorch.org/whl/cpu
}

# ensure_jax: JAX's CPU build, for the tests of kernels inside of jax.jit, which are left out where the
# package index does not have it.
ensure_jax() {
  "$VENV/bin/python" -c "import jax" 2>/dev/null && return
  say "installing JAX"
  "$VENV/bin/python" -m pip install -q --disable-pip-version-check jax flatbuffers ||
    say "there is no JAX: tests of calls inside of jax.jit are left out"
}

# ensure_ptxas: the assembler of GPU code and libdevice, for the tests that go as far as that.
# Where neither a toolkit nor the package index has them, these tests are left out.
ensure_ptxas() {
  command -v ptxas >/dev/null && return
  [ -x "${CUDA_HOME:-/usr/local/cuda}/bin/ptxas" ] || {
    local site
    site="$("$VENV/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
    if [ ! -x "$site/nvidia/cu13/bin/ptxas" ]; then
      say "installing ptxas"
      "$VENV/bin/python" -m pip install -q --disable-pip-version-check "nvidia-cuda-nvcc>=13.3" nvidia-nvvm || {
        say "there is no ptxas: tests that assemble GPU code are left out"
        return 0
      }
    fi
    export CUDA_HOME="$site/nvidia/cu13"
  }
  export PATH="${CUDA_HOME:-/usr/local/cuda}/bin:$PATH"
}

# build PRESET [targets...]: configures once, then builds.
build() {
  local preset="$1"
  shift
  local dir="$ROOT/build/$preset" started=$SECONDS
  mkdir -p "$dir"
  # What was compiled against the shared precompiled header can be recognised again.
  export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
  if [ ! -f "$dir/build.ninja" ]; then
    say "configuring the $preset build"
    local arguments=(--preset "$preset" -DPython3_EXECUTABLE="$VENV/bin/python")
    [ -n "${MLIR_DIR:-}" ] && arguments+=(-DMLIR_DIR="$MLIR_DIR")
    (cd "$ROOT" && cmake "${arguments[@]}") >"$dir/configure.log" 2>&1 || {
      tail -n 20 "$dir/configure.log" >&2
      die "cmake failed; the whole log is $dir/configure.log"
    }
  fi
  say "building ($preset)"
  "$PYTHON" "$ROOT/tools/dev/build_progress.py" ninja -C "$dir" "$@" || die "the $preset build failed"
  say "built in $((SECONDS - started)) s"
  # Of several builds, this is now the one that Python sees.
  local library
  for library in "$dir"/lib/libtessera.so "$dir"/lib/_C.*.so; do
    [ -e "$library" ] && ln -sfn "$library" "$ROOT/python/tessera/$(basename "$library")"
  done
  return 0
}
