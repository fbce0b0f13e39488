# Gives the tests of a build the environment of test/environment.txt. CTest runs this file, before it starts any test,
# where a directory names it:
#   set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ".../cmake/TestEnvironment.cmake")
# What a test sets with its property ENVIRONMENT comes on top.

file(STRINGS "${CMAKE_CURRENT_LIST_DIR}/../test/environment.txt" lines REGEX "^(keep|set) ")
set(kept "")
foreach(line IN LISTS lines)
  if(line MATCHES "^keep (.*)$")
    list(APPEND kept "${CMAKE_MATCH_1}")
  endif()
endforeach()
list(JOIN kept "|" kept)

execute_process(COMMAND env OUTPUT_VARIABLE all)
string(REGEX MATCHALL "(^|\n)[A-Za-z_][A-Za-z_0-9]*=" names "${all}")
foreach(name IN LISTS names)
  string(REGEX REPLACE "[\n=]" "" name "${name}")
  if(NOT name MATCHES "^(${kept})$")
    unset(ENV{${name}})
  endif()
endforeach()

foreach(line IN LISTS lines)
  if(line MATCHES "^set ([A-Z_0-9]+)=(.*)$")
    set(ENV{${CMAKE_MATCH_1}} "${CMAKE_MATCH_2}")
  endif()
endforeach()
