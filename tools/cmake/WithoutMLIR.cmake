# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Ends a configuration that has found no MLIR it can use, and says what to install.
set(found "")
if(MLIR_CONSIDERED_CONFIGS)
  set(found "\nFound, and of no use: ${MLIR_CONSIDERED_CONFIGS} (${MLIR_CONSIDERED_VERSIONS}).")
endif()
if(MLIR_NOT_FOUND_MESSAGE)
  string(APPEND found "\n${MLIR_NOT_FOUND_MESSAGE}")
endif()
message(FATAL_ERROR "Tessera is built with LLVM and MLIR 22.1, which were not found.${found}
On Debian 12 or newer:
  sudo apt-get install clang-22 lld-22 libmlir-22-dev mlir-22-tools llvm-22-dev ccache cmake \\
    ninja-build libzstd-dev zlib1g-dev libedit-dev libcurl4-openssl-dev libxml2-dev
Elsewhere, set the environment variable MLIR_DIR to the folder of your MLIR that holds
MLIRConfig.cmake (for example /opt/llvm-22/lib/cmake/mlir), or pass -DMLIR_DIR= to CMake.")
