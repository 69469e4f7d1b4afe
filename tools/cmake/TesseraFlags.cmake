# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The flags that every file is compiled and linked with.
add_library(tessera_flags INTERFACE)
target_compile_options(tessera_flags INTERFACE
  -Wall -Wextra -Wno-unused-parameter -ffunction-sections -fdata-sections)
if(TESSERA_ENABLE_WERROR)
  target_compile_options(tessera_flags INTERFACE -Werror)
endif()
if(NOT TESSERA_ENABLE_ASSERTIONS)
  target_compile_definitions(tessera_flags INTERFACE NDEBUG)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_link_options(tessera_flags INTERFACE -fuse-ld=lld)
endif()
if(TESSERA_SANITIZE)
  # A call by a pointer would look for a type in front of the function: JIT code has none, and
  # may have no memory there.
  target_compile_options(tessera_flags INTERFACE
    -fsanitize=${TESSERA_SANITIZE} -fno-sanitize=function -fno-omit-frame-pointer)
  target_link_options(tessera_flags INTERFACE -fsanitize=${TESSERA_SANITIZE})
endif()
# The tables of what is linked are read-only once it is loaded.
target_link_options(tessera_flags INTERFACE
  -Wl,--gc-sections -Wl,--as-needed -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)

# Checks of the stack and of copies' lengths: in what users run, and in every build where what
# users pass comes in. With other flags than the precompiled header was made with, the rest of a
# build for work on the compiler would be compiled anew.
set(TESSERA_HARDENING -fstack-protector-strong)
if(NOT TESSERA_SANITIZE)
  list(APPEND TESSERA_HARDENING -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
endif()
if(NOT TESSERA_ENABLE_ASSERTIONS)
  target_compile_options(tessera_flags INTERFACE ${TESSERA_HARDENING})
endif()

# --- Size --------------------------------------------------------------------------
# What is compiled for speed is still linked for size: functions of the same code become one, which
# nothing here minds (no function is told from another by its address), and a string that another
# ends with is part of that one.
function(tessera_link_for_size name)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND NOT TESSERA_SANITIZE)
    target_link_options(${name} PRIVATE -Wl,--icf=all -Wl,-O2)
  endif()
endfunction()

# --- Systems that are older than this one ------------------------------------------
# A library built here asks for this system's glibc and C++ library, unless it brings what older
# ones lack. With sanitizers, which have a place between a program and glibc, it does not.
set(old_glibc OFF)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|aarch64)$" AND NOT TESSERA_SANITIZE)
  include(CheckCXXSymbolExists)
  check_cxx_symbol_exists(__GLIBC__ features.h TESSERA_HAS_GLIBC)
  if(TESSERA_HAS_GLIBC)
    set(old_glibc ON)
  endif()
endif()
option(TESSERA_OLD_GLIBC "Have libtessera.so and tessera._C run with glibc 2.28" ${old_glibc})

# Has a shared library run on systems as old as manylinux_2_28. There, threads and dlopen are in
# libraries of their own.
function(tessera_run_on_old_glibc name)
  if(TESSERA_OLD_GLIBC)
    set(source ${PROJECT_SOURCE_DIR}/lib/CAPI/OldGlibc.cpp)
    target_sources(${name} PRIVATE ${source})
    set_source_files_properties(${source} PROPERTIES SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
    target_link_options(${name} PRIVATE -static-libstdc++
      -Wl,--push-state,--no-as-needed -l:libpthread.so.0 -l:libdl.so.2 -Wl,--pop-state)
  endif()
endfunction()
