# Chooses the LLVM major and, unless the caller named one, the compiler.
# clang++ reads the clang headers in half the time g++ needs, so it comes first.

set(DEVICE_TIDY_SUPPORTED_LLVM 22 19)

if(NOT DEFINED DEVICE_TIDY_LLVM)
  foreach(major IN LISTS DEVICE_TIDY_SUPPORTED_LLVM)
    if(EXISTS "/usr/lib/llvm-${major}/lib/cmake/clang/ClangConfig.cmake")
      set(DEVICE_TIDY_LLVM ${major})
      break()
    endif()
  endforeach()
endif()
if(NOT DEFINED DEVICE_TIDY_LLVM)
  list(GET DEVICE_TIDY_SUPPORTED_LLVM 0 DEVICE_TIDY_LLVM)
endif()
set(DEVICE_TIDY_LLVM ${DEVICE_TIDY_LLVM} CACHE STRING "LLVM major version to build against (22 or 19)")

if(NOT DEFINED CMAKE_CXX_COMPILER AND NOT DEFINED ENV{CXX})
  find_program(DEVICE_TIDY_CXX NAMES clang++-22 clang++-${DEVICE_TIDY_LLVM} NO_CACHE)
  if(DEVICE_TIDY_CXX)
    set(CMAKE_CXX_COMPILER "${DEVICE_TIDY_CXX}")
  endif()
endif()

find_program(DEVICE_TIDY_CCACHE ccache)
if(DEVICE_TIDY_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER
   AND NOT DEFINED ENV{CMAKE_CXX_COMPILER_LAUNCHER})
  # The sloppiness lets ccache serve files that use the precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND};-E;env;CCACHE_SLOPPINESS=pch_defines,time_macros;${DEVICE_TIDY_CCACHE}")
endif()
