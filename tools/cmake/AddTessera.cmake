# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# tessera_add_library, tessera_add_tool, tessera_add_unittest, and the link rules they share.

# --- A static link ------------------------------------------------------------
# Debian's exported MLIR targets name the shared libLLVM in the link interface of
# almost every library. Tessera links the component archives instead (see
# docs/Architecture.md, "One core library"), so the shared ones are taken out.
foreach(target ${MLIR_EXPORTED_TARGETS})
  if(TARGET ${target})
    get_target_property(interface ${target} INTERFACE_LINK_LIBRARIES)
    if(interface)
      list(REMOVE_ITEM interface LLVM MLIR)
      set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES "${interface}")
    endif()
  endif()
endforeach()

# For another system, which is unpacked in a folder (OtherSystem.cmake). Debian's LLVM names a library
# by its place in the system that it is of; and TableGen is to run here.
if(CMAKE_SYSROOT)
  find_program(TESSERA_TABLEGEN NAMES mlir-tblgen-22 mlir-tblgen HINTS /usr/lib/llvm-22/bin REQUIRED)
  set(MLIR_TABLEGEN_EXE ${TESSERA_TABLEGEN})
  foreach(target ${LLVM_AVAILABLE_LIBS})
    set(interface "")
    if(TARGET ${target})
      get_target_property(interface ${target} INTERFACE_LINK_LIBRARIES)
    endif()
    if(interface)
      list(TRANSFORM interface REPLACE "^/usr/" "${CMAKE_SYSROOT}/usr/")
      set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES "${interface}")
    endif()
  endforeach()
endif()

# Archives of LLVM for what the compiler calls: the code generators of NVIDIA's GPUs, of the CPU
# that this is built for and of AArch64 (for `python -m tessera build`), the optimiser, the JIT, and what MLIR itself needs.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(TESSERA_CPU_BACKENDS AArch64)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set(TESSERA_CPU_BACKENDS X86 AArch64)
else()
  message(FATAL_ERROR "Tessera generates code for x86-64 and AArch64 CPUs, not for ${CMAKE_SYSTEM_PROCESSOR}")
endif()
llvm_map_components_to_libnames(TESSERA_LLVM_LIBS
  Analysis AsmParser BitReader BitWriter Core IRReader JITLink Linker MC OrcJIT Passes
  Remarks Support Target TargetParser TransformUtils ${TESSERA_CPU_BACKENDS} NVPTX FrontendOpenMP)

# LLVM's compression, as archives where there are any. To be named before LLVM itself, which names
# the shared ones: a bare system need not have those.
set(TESSERA_COMPRESSION "")
foreach(name libzstd.a libz.a)
  find_library(TESSERA_${name} ${name})
  if(TESSERA_${name})
    list(APPEND TESSERA_COMPRESSION ${TESSERA_${name}})
  endif()
endforeach()

# --- One shared precompiled header ------------------------------------------------
# An MLIR file takes 8 s without it and 0.3-1.4 s with it (style.md, section 3).
# -fno-pch-timestamp keeps the header's content the same from build to build, so
# that ccache can recognise what was compiled against it.
file(WRITE ${CMAKE_BINARY_DIR}/tessera_pch.cpp.in "// Built only for its precompiled header.\n")
configure_file(${CMAKE_BINARY_DIR}/tessera_pch.cpp.in ${CMAKE_BINARY_DIR}/tessera_pch.cpp COPYONLY)
add_library(tessera_pch OBJECT ${CMAKE_BINARY_DIR}/tessera_pch.cpp)
target_link_libraries(tessera_pch PRIVATE tessera_flags)
target_precompile_headers(tessera_pch PRIVATE ${CMAKE_CURRENT_LIST_DIR}/Precompiled.h)
# It includes headers that TableGen writes.
add_dependencies(tessera_pch TesseraStripsIncGen TesseraTileGPUIncGen TesseraTileIncGen)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(tessera_pch PRIVATE -fpch-instantiate-templates "SHELL:-Xclang -fno-pch-timestamp")
  set(CMAKE_PCH_INSTANTIATE_TEMPLATES ON)
endif()

# Has a target use the shared precompiled header, with the flags it was made with:
# programs too are compiled -fPIC, since clang refuses a header made without -fPIE.
function(tessera_match_pch name)
  target_precompile_headers(${name} REUSE_FROM tessera_pch)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIC)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_options(${name} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endfunction()

# tessera_add_library(NAME sources... [DEPENDS tablegen-targets...] [LINK libraries...] [NO_MLIR])
#
# A static library from the sources of one folder of lib/. NO_MLIR is for the
# folders that know no MLIR (lib/Runtime, lib/Layout): they are compiled without the
# shared precompiled header, whose inline functions would drag MLIR into the link.
function(tessera_add_library name)
  cmake_parse_arguments(arg "NO_MLIR" "" "DEPENDS;LINK" ${ARGN})
  add_library(${name} STATIC ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC ${arg_LINK} PRIVATE tessera_flags)
  if(arg_DEPENDS)
    add_dependencies(${name} ${arg_DEPENDS})
  endif()
  if(NOT arg_NO_MLIR)
    tessera_match_pch(${name})
  endif()
endfunction()

# tessera_add_tool(NAME sources... [LINK libraries...] [NO_MLIR])
function(tessera_add_tool name)
  cmake_parse_arguments(arg "NO_MLIR" "" "LINK" ${ARGN})
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  if(NOT arg_NO_MLIR)
    target_link_libraries(${name} PRIVATE ${TESSERA_COMPRESSION})
  endif()
  target_link_libraries(${name} PRIVATE tessera_flags ${arg_LINK})
  if(NOT arg_NO_MLIR)
    target_link_libraries(${name} PRIVATE ${TESSERA_LLVM_LIBS})
    tessera_match_pch(${name})
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  if(NOT TESSERA_ENABLE_ASSERTIONS)
    tessera_link_for_size(${name})
    tessera_run_on_old_glibc(${name})
  endif()
endfunction()

# tessera_add_unittest(NAME sources... [LINK libraries...] [NO_MLIR])
#
# A gtest program in <build>/unittest, run by lit through test/Unit.
function(tessera_add_unittest name)
  cmake_parse_arguments(arg "NO_MLIR" "" "LINK" ${ARGN})
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE tessera_flags ${arg_LINK} GTest::gtest GTest::gmock GTest::gtest_main)
  if(NOT arg_NO_MLIR)
    target_link_libraries(${name} PRIVATE ${TESSERA_LLVM_LIBS})
    tessera_match_pch(${name})
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/unittest)
  add_dependencies(TesseraUnitTests ${name})
endfunction()
