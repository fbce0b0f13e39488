# How the project's own targets are made.

# Warnings for our code; headers of LLVM, LibTorch and Debian packages are SYSTEM and stay quiet.
add_library(dt_warnings INTERFACE)
target_compile_options(dt_warnings INTERFACE -Wall -Wextra -Wpedantic)
if(DEVICE_TIDY_WERROR)
  target_compile_options(dt_warnings INTERFACE -Werror)
endif()

# Includes are written from the repository root: #include "analyzer/facts/Program.h".
add_library(dt_includes INTERFACE)
target_include_directories(dt_includes INTERFACE "${PROJECT_SOURCE_DIR}" "${DEVICE_TIDY_GENERATED_DIR}")

# device_tidy_library(NAME [RECURSE] [GENERATED FILE...] [WITHOUT FILE...] [LINK TARGET...])
#
# A static library of the *.cpp files of the current folder (and its subfolders with RECURSE), WITHOUT some.
# GENERATED files are written before its sources are compiled. A folder that holds only headers
# becomes an interface library.
function(device_tidy_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "RECURSE" "" "GENERATED;WITHOUT;LINK")
  set(glob GLOB)
  if(arg_RECURSE)
    set(glob GLOB_RECURSE)
  endif()
  file(${glob} sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  foreach(file IN LISTS arg_WITHOUT)
    list(REMOVE_ITEM sources "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
  endforeach()
  if(NOT sources)
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE dt_includes ${arg_LINK})
    return()
  endif()
  add_library(${name} STATIC ${sources} ${arg_GENERATED})
  target_link_libraries(${name} PUBLIC dt_includes ${arg_LINK} PRIVATE dt_warnings)
endfunction()

# device_tidy_generate(OUTPUT SCRIPT ARGUMENTS... DEPENDS FILE...)
#
# Runs a Python script of the project that writes OUTPUT whenever the script or a file it reads changes.
function(device_tidy_generate output script)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "ARGUMENTS;DEPENDS")
  cmake_path(GET output FILENAME label)
  add_custom_command(
    OUTPUT "${output}"
    COMMAND Python3::Interpreter "${script}" ${arg_ARGUMENTS}
    DEPENDS "${script}" ${arg_DEPENDS}
    COMMENT "Generating ${label}"
    VERBATIM)
endfunction()
