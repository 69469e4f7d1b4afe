# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# What the presets say and pip does not: the compiler, the linker that comes with it, and ccache.
# Included before project(). What the user names, by -D or in CXX, is left as it is; "g++" and "c++"
# there are what scikit-build-core says where the user says nothing.
if(NOT DEFINED CMAKE_CXX_COMPILER AND "$ENV{CXX}" MATCHES "^([a-z0-9_-]*-)?(g\\+\\+|c\\+\\+)?$")
  find_program(TESSERA_CLANG clang-22)
  find_program(TESSERA_CLANGXX clang++-22)
  if(TESSERA_CLANG AND TESSERA_CLANGXX)
    set(CMAKE_C_COMPILER ${TESSERA_CLANG})
    set(CMAKE_CXX_COMPILER ${TESSERA_CLANGXX})
  endif()
endif()
if(NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(TESSERA_CCACHE ccache)
  if(TESSERA_CCACHE)
    # What was compiled against the shared precompiled header can be recognised again.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${TESSERA_CCACHE})
  endif()
endif()
