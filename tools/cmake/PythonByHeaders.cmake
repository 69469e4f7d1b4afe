# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# python_by_headers_add_library(NAME sources...): an extension module for the CPython whose Python.h is in the
# folder TESSERA_PYTHON_HEADERS. That Python need not run here: it may be of another machine, or ask for a
# newer glibc than there is.
include(CheckCXXSymbolExists)

# Debian has pyconfig.h beside that folder, by machine. Behind all else, so that nothing of that
# system's own C library is taken.
get_filename_component(beside "${TESSERA_PYTHON_HEADERS}" DIRECTORY)
set(TESSERA_PYTHON_OPTIONS -idirafter ${beside})

set(version "")
foreach(part MAJOR MINOR)
  file(STRINGS "${TESSERA_PYTHON_HEADERS}/patchlevel.h" line REGEX "define PY_${part}_VERSION ")
  string(REGEX MATCH "[0-9]+$" number "${line}")
  string(APPEND version "${number}")
endforeach()

set(CMAKE_REQUIRED_INCLUDES ${TESSERA_PYTHON_HEADERS})
string(REPLACE ";" " " CMAKE_REQUIRED_FLAGS "${TESSERA_PYTHON_OPTIONS}")
unset(TESSERA_PYTHON_HAS_NO_GIL CACHE) # of what may be other headers than the last time
check_cxx_symbol_exists(Py_GIL_DISABLED pyconfig.h TESSERA_PYTHON_HAS_NO_GIL)
unset(CMAKE_REQUIRED_INCLUDES)
unset(CMAKE_REQUIRED_FLAGS)
if(TESSERA_PYTHON_HAS_NO_GIL)
  string(APPEND version t)
endif()
set(TESSERA_PYTHON_SUFFIX .cpython-${version}-${CMAKE_SYSTEM_PROCESSOR}-linux-gnu.so)
message(STATUS "Extensions for the Python of ${TESSERA_PYTHON_HEADERS} end in ${TESSERA_PYTHON_SUFFIX}")

function(python_by_headers_add_library name)
  add_library(${name} MODULE ${ARGN})
  target_include_directories(${name} SYSTEM PRIVATE ${TESSERA_PYTHON_HEADERS})
  target_compile_options(${name} PRIVATE ${TESSERA_PYTHON_OPTIONS})
  set_target_properties(${name} PROPERTIES PREFIX "" SUFFIX ${TESSERA_PYTHON_SUFFIX})
endfunction()
