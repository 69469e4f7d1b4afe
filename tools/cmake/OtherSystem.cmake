# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# A toolchain file: clang compiles for a machine TESSERA_MACHINE (aarch64), whose system is unpacked in
# the folder TESSERA_SYSTEM (tools/dev/unpack_system.sh), LLVM and MLIR in it. The programs that a
# build runs are this machine's. `tools/wheel --system` is what uses it.
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TESSERA_MACHINE TESSERA_SYSTEM)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${TESSERA_MACHINE})
set(CMAKE_SYSROOT ${TESSERA_SYSTEM})
set(CMAKE_C_COMPILER clang-22)
set(CMAKE_CXX_COMPILER clang++-22)
set(CMAKE_C_COMPILER_TARGET ${TESSERA_MACHINE}-linux-gnu)
set(CMAKE_CXX_COMPILER_TARGET ${TESSERA_MACHINE}-linux-gnu)

# This machine's own linker and strip may know no other machine.
foreach(kind EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT -fuse-ld=lld)
endforeach()

set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
find_program(CMAKE_STRIP NAMES llvm-strip-22 llvm-strip HINTS /usr/lib/llvm-22/bin REQUIRED)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
# pybind11 has nothing of a machine, and is where pip has put it.
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)
set(MLIR_DIR ${TESSERA_SYSTEM}/usr/lib/llvm-22/lib/cmake/mlir CACHE PATH "MLIR of the other system")
