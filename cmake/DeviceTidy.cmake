#[=======================================================================[.rst:
DeviceTidy
----------

Checks targets as a part of the build:

  find_package(DeviceTidy REQUIRED)
  device_tidy_add_check(train)

Every C++ source of the target, and of the libraries of the project that it links, gets a build edge that reads it into
a facts file; one more edge links the facts and fails when there is a finding. docs/scale-out.md describes it.

  device_tidy_add_check(<target> [ALL]
    [NAME <name>]        the target that runs the check (default: device-tidy-<target>)
    [CHECKS <globs>...]  as --checks
    [LEVEL <level>]      as --level
    [OPTIONS <option>...]  further options of device-tidy --link, such as --warnings-as-errors=*
    [EXCLUDE <target>...]) libraries whose sources are left out

ALL makes the check a part of the default target.

Variables: DEVICE_TIDY_EXECUTABLE (in the cache) is the program; DEVICE_TIDY_EMIT_OPTIONS are further options for
reading sources, such as --cache-dir=DIR.

Needs CMake 3.20 and a Ninja or Makefile generator.
#]=======================================================================]

include_guard(GLOBAL)
if(CMAKE_VERSION VERSION_LESS 3.20)
  message(FATAL_ERROR "DeviceTidy needs CMake 3.20 or newer, and this is ${CMAKE_VERSION}.")
endif()
cmake_policy(PUSH)
cmake_policy(VERSION 3.20)

find_program(DEVICE_TIDY_EXECUTABLE device-tidy HINTS ${DEVICE_TIDY_HINTS} DOC "The device-tidy program")

define_property(TARGET PROPERTY DEVICE_TIDY_FACTS
  BRIEF_DOCS "Facts files of a target's sources"
  FULL_DOCS "Facts files of a target's sources; set by device_tidy_add_check.")

function(device_tidy_add_check target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "ALL" "NAME;LEVEL" "CHECKS;OPTIONS;EXCLUDE")
  if(arg_UNPARSED_ARGUMENTS OR arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "device_tidy_add_check(${target}): what is '${arg_UNPARSED_ARGUMENTS}"
                        "${arg_KEYWORDS_MISSING_VALUES}'? The keywords are ALL, NAME, CHECKS, LEVEL, OPTIONS "
                        "and EXCLUDE, all but ALL with a value.")
  endif()
  if(NOT TARGET "${target}")
    message(FATAL_ERROR "device_tidy_add_check(${target}): there is no such target; call it after "
                        "add_executable or add_library.")
  endif()
  if(NOT DEVICE_TIDY_EXECUTABLE)
    message(FATAL_ERROR "device_tidy_add_check(${target}): device-tidy is not found; "
                        "pass -DDEVICE_TIDY_EXECUTABLE=PATH.")
  endif()
  if(NOT CMAKE_GENERATOR MATCHES "Ninja|Makefiles")
    message(FATAL_ERROR "device_tidy_add_check(${target}): the generator ${CMAKE_GENERATOR} writes no "
                        "compile_commands.json; use Ninja or Makefiles.")
  endif()
  get_target_property(alias "${target}" ALIASED_TARGET)
  if(alias)
    set(target "${alias}")
  endif()
  if(NOT arg_NAME)
    set(arg_NAME "device-tidy-${target}")
  endif()
  set(all)
  if(arg_ALL)
    set(all ALL)
  endif()
  # The edges are made when the whole project is read: sources and libraries may still be added to targets, and all
  # custom commands have to stand in one directory to depend on each other's files.
  string(REPLACE ";" "," checks "${arg_CHECKS}")
  set_property(GLOBAL PROPERTY _DEVICE_TIDY_OPTIONS_${arg_NAME} "${arg_OPTIONS}")
  set_property(GLOBAL PROPERTY _DEVICE_TIDY_EXCLUDE_${arg_NAME} "${arg_EXCLUDE}")
  set_property(TARGET "${target}" PROPERTY DEVICE_TIDY_EMIT_OPTIONS "${DEVICE_TIDY_EMIT_OPTIONS}")
  cmake_language(EVAL CODE "cmake_language(DEFER DIRECTORY [==[${CMAKE_SOURCE_DIR}]==] CALL _device_tidy_make_check
    [==[${target}]==] [==[${arg_NAME}]==] [==[${checks}]==] [==[${arg_LEVEL}]==] [==[${all}]==])")
endfunction()

function(_device_tidy_make_check target name checks level all)
  get_property(options GLOBAL PROPERTY _DEVICE_TIDY_OPTIONS_${name})
  get_property(excluded GLOBAL PROPERTY _DEVICE_TIDY_EXCLUDE_${name})
  get_target_property(emitOptions "${target}" DEVICE_TIDY_EMIT_OPTIONS)
  _device_tidy_program("${target}" "${excluded}" parts)
  set(facts)
  set(users)
  foreach(part IN LISTS parts)
    _device_tidy_emit("${part}" "${emitOptions}")
    get_target_property(own "${part}" DEVICE_TIDY_FACTS)
    if(own)
      list(APPEND facts ${own})
      list(APPEND users "device-tidy-facts-${part}")
      _device_tidy_makers("${part}" makers)
      if(makers)
        add_dependencies("device-tidy-facts-${part}" ${makers})
      endif()
    endif()
  endforeach()
  if(NOT facts)
    message(FATAL_ERROR "device_tidy_add_check(${target}): neither the target nor the project's libraries it links "
                        "have C++ sources.")
  endif()

  set(directory "${CMAKE_BINARY_DIR}/device-tidy")
  set(stamp "${directory}/${name}.stamp")
  set(list "${directory}/${name}.rsp") # command lines have a limit
  list(TRANSFORM facts REPLACE "(.+)" "\"\\1\"" OUTPUT_VARIABLE lines)
  list(JOIN lines "\n" lines)
  file(GENERATE OUTPUT "${list}" CONTENT "${lines}\n")
  set(command "${DEVICE_TIDY_EXECUTABLE}" --link)
  if(checks)
    list(APPEND command "--checks=${checks}")
  endif()
  if(level)
    list(APPEND command "--level=${level}")
  endif()
  add_custom_command(
    OUTPUT "${stamp}"
    COMMAND ${command} ${options} "@${list}"
    COMMAND "${CMAKE_COMMAND}" -E touch "${stamp}"
    DEPENDS ${facts} "${list}" "${DEVICE_TIDY_EXECUTABLE}"
    COMMENT "Checking the devices of ${target}"
    VERBATIM)
  add_custom_target("${name}" ${all} DEPENDS "${stamp}")
  add_dependencies("${name}" ${users})
endfunction()

# The target and the libraries of the project that are linked into it, each once.
function(_device_tidy_program target excluded result)
  _device_tidy_closure("${target}" all unknown)
  foreach(entry IN LISTS unknown)
    message(WARNING "device_tidy_add_check(${target}): ${entry} is known only when the build is generated; if it is "
                    "a library of the project, its sources take no part in the check.")
  endforeach()
  set(parts)
  foreach(part IN LISTS all)
    _device_tidy_is_own("${part}" own)
    if(part STREQUAL target OR (own AND NOT part IN_LIST excluded))
      list(APPEND parts "${part}")
    endif()
  endforeach()
  set(${result} "${parts}" PARENT_SCOPE)
endfunction()

# Targets to build before the sources of a target are read: what makes files for it and for what it links, as these
# are there, too, when it is compiled.
function(_device_tidy_makers target result)
  _device_tidy_closure("${target}" all unknown)
  set(makers)
  foreach(part IN LISTS all)
    _device_tidy_maker("${part}" maker)
    list(APPEND makers ${maker})
  endforeach()
  set(${result} "${makers}" PARENT_SCOPE)
endfunction()

# The target and what is linked into it that is no imported target, each once; entries of which nobody knows yet what
# they are.
function(_device_tidy_closure target result unknownResult)
  set(open "${target}")
  set(seen)
  set(unknown)
  while(open)
    list(POP_FRONT open entry)
    _device_tidy_plain_name("${entry}" part)
    if(part MATCHES "\\$<")
      list(APPEND unknown "${entry}")
    endif()
    if(NOT TARGET "${part}")
      continue()
    endif()
    get_target_property(alias "${part}" ALIASED_TARGET)
    if(alias)
      set(part "${alias}")
    endif()
    get_target_property(imported "${part}" IMPORTED)
    if(imported OR part IN_LIST seen)
      continue()
    endif()
    list(APPEND seen "${part}")
    _device_tidy_linked("${part}" linked)
    list(APPEND open ${linked})
  endwhile()
  set(${result} "${seen}" PARENT_SCOPE)
  set(${unknownResult} "${unknown}" PARENT_SCOPE)
endfunction()

# What is in $<LINK_ONLY:x>, $<BUILD_INTERFACE:x> and the like; without the "::@(0x...)" that says in which directory a
# name was used.
function(_device_tidy_plain_name entry result)
  set(wrapper "^\\$<(LINK_ONLY|BUILD_INTERFACE|BUILD_LOCAL_INTERFACE|TARGET_NAME|TARGET_OBJECTS):(.*)>$")
  while(entry MATCHES "${wrapper}")
    set(entry "${CMAKE_MATCH_2}")
  endwhile()
  string(REGEX REPLACE "::@.*$" "" entry "${entry}")
  set(${result} "${entry}" PARENT_SCOPE)
endfunction()

# The entries of a target's link libraries, and the object libraries among its sources.
function(_device_tidy_linked target result)
  get_target_property(type "${target}" TYPE)
  set(libraries INTERFACE_LINK_LIBRARIES)
  set(sources INTERFACE_SOURCES)
  if(NOT type STREQUAL "INTERFACE_LIBRARY")
    list(APPEND libraries LINK_LIBRARIES)
    list(APPEND sources SOURCES)
  endif()
  set(linked)
  foreach(property IN LISTS libraries sources)
    get_target_property(entries "${target}" ${property})
    if(NOT entries)
      continue()
    endif()
    if(property IN_LIST sources)
      list(FILTER entries INCLUDE REGEX "^\\$<TARGET_OBJECTS:")
    endif()
    list(APPEND linked ${entries})
  endforeach()
  set(${result} "${linked}" PARENT_SCOPE)
endfunction()

# Targets to build for the files that the build writes for `target` and that sources may include; empty when there are
# none. The files alone are made where that can be said: the target itself need not compile or link.
function(_device_tidy_maker target result)
  # Another target may make files, by no rule that says so.
  get_target_property(before "${target}" MANUALLY_ADDED_DEPENDENCIES)
  if(NOT before)
    set(before)
  endif()
  set(${result} "${before}" PARENT_SCOPE)
  set(maker "device-tidy-makes-${target}")
  if(TARGET "${maker}")
    set(${result} ${before} "${maker}" PARENT_SCOPE)
    return()
  endif()
  _device_tidy_generated("${target}" files byTarget)
  get_target_property(directory "${target}" SOURCE_DIR)
  # Make knows how a file is made in the directory of its rule only, and two targets must not make it at a time.
  if(byTarget OR (files AND CMAKE_GENERATOR MATCHES "Makefiles" AND NOT directory STREQUAL CMAKE_SOURCE_DIR))
    set(${result} "${target}" PARENT_SCOPE)
  elseif(files)
    add_custom_target("${maker}" DEPENDS ${files})
    if(before)
      add_dependencies("${maker}" ${before})
    endif()
    if(CMAKE_GENERATOR MATCHES "Makefiles")
      add_dependencies("${target}" "${maker}")
    endif()
    set(${result} ${before} "${maker}" PARENT_SCOPE)
  endif()
endfunction()

# The generated sources of a target, and whether the target itself writes others that have no rule of their own.
function(_device_tidy_generated target filesResult byTargetResult)
  set(${filesResult} "" PARENT_SCOPE)
  set(${byTargetResult} FALSE PARENT_SCOPE)
  get_target_property(type "${target}" TYPE)
  if(type STREQUAL "INTERFACE_LIBRARY")
    return()
  endif()
  get_target_property(sources "${target}" SOURCES)
  set(files)
  foreach(source IN LISTS sources)
    if(NOT source MATCHES "\\$<")
      _device_tidy_source_path("${target}" "${source}" path)
      get_source_file_property(generated "${path}" TARGET_DIRECTORY "${target}" GENERATED)
      if(generated)
        list(APPEND files "${path}")
      endif()
    endif()
  endforeach()
  set(${filesResult} "${files}" PARENT_SCOPE)
  foreach(property IN ITEMS AUTOMOC AUTOUIC AUTORCC)
    get_target_property(value "${target}" ${property})
    if(value)
      set(${byTargetResult} TRUE PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

# Is a library the project's own? Not what was downloaded into the build tree, and not what device-tidy takes for
# vendored.
function(_device_tidy_is_own target result)
  set(${result} TRUE PARENT_SCOPE)
  get_target_property(directory "${target}" SOURCE_DIR)
  cmake_path(IS_PREFIX CMAKE_SOURCE_DIR "${directory}" NORMALIZE below)
  cmake_path(IS_PREFIX CMAKE_BINARY_DIR "${directory}" NORMALIZE built)
  _device_tidy_is_vendored("${directory}" vendored)
  if(NOT below OR vendored OR (built AND NOT CMAKE_SOURCE_DIR STREQUAL CMAKE_BINARY_DIR))
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()

# Does the way to a path in the project, or in its build tree, lead through a folder of vendored code?
function(_device_tidy_is_vendored path result)
  set(${result} FALSE PARENT_SCOPE)
  set(names third_party third-party thirdparty 3rdparty 3rd_party external extern vendor vendored _deps)
  foreach(top IN ITEMS "${CMAKE_BINARY_DIR}" "${CMAKE_SOURCE_DIR}")
    cmake_path(IS_PREFIX top "${path}" NORMALIZE below)
    if(NOT below)
      continue()
    endif()
    file(RELATIVE_PATH place "${top}" "${path}")
    string(REPLACE "/" ";" folders "${place}")
    foreach(folder IN LISTS folders)
      if(folder IN_LIST names)
        set(${result} TRUE PARENT_SCOPE)
      endif()
    endforeach()
    return()
  endforeach()
endfunction()

# The edges of a target's own sources, and the target device-tidy-facts-<target> that drives them. Checks share them.
function(_device_tidy_emit target emitOptions)
  get_property(isMade TARGET "${target}" PROPERTY DEVICE_TIDY_FACTS SET)
  if(isMade)
    return()
  endif()
  _device_tidy_sources("${target}" sources)
  set(facts)
  if(sources)
    set_property(TARGET "${target}" PROPERTY EXPORT_COMPILE_COMMANDS ON)
    _device_tidy_commands(commands)
  endif()
  foreach(source IN LISTS sources)
    _device_tidy_facts_name("${target}" "${source}" file)
    cmake_path(GET file PARENT_PATH directory) # Ninja would make it, Make does not
    file(MAKE_DIRECTORY "${directory}")
    add_custom_command(
      OUTPUT "${file}"
      COMMAND "${DEVICE_TIDY_EXECUTABLE}" --quiet -j 1 -p "${CMAKE_BINARY_DIR}"
              "--project-root=${CMAKE_SOURCE_DIR}" ${emitOptions}
              "--emit-facts=${file}" "--depfile=${file}.d" "${source}"
      DEPENDS "${source}" "${commands}" "${DEVICE_TIDY_EXECUTABLE}"
      DEPFILE "${file}.d"
      COMMENT "Reading the devices of ${source}"
      VERBATIM)
    list(APPEND facts "${file}")
  endforeach()
  set_property(TARGET "${target}" PROPERTY DEVICE_TIDY_FACTS "${facts}")
  if(NOT facts)
    return()
  endif()
  add_custom_target("device-tidy-facts-${target}" DEPENDS ${facts})
  add_dependencies("device-tidy-facts-${target}" device-tidy-commands)
endfunction()

# An entry of a target's sources as an absolute path: what the build makes may be named from the binary directory.
function(_device_tidy_source_path target source result)
  get_target_property(directory "${target}" SOURCE_DIR)
  get_target_property(binary "${target}" BINARY_DIR)
  set(path "${source}")
  cmake_path(ABSOLUTE_PATH path BASE_DIRECTORY "${directory}" NORMALIZE)
  if(NOT EXISTS "${path}")
    set(made "${source}")
    cmake_path(ABSOLUTE_PATH made BASE_DIRECTORY "${binary}" NORMALIZE)
    get_source_file_property(isMade "${made}" TARGET_DIRECTORY "${target}" GENERATED)
    if(isMade)
      set(path "${made}")
    endif()
  endif()
  set(${result} "${path}" PARENT_SCOPE)
endfunction()

# The C++ sources of a target as absolute paths.
function(_device_tidy_sources target result)
  get_target_property(type "${target}" TYPE)
  if(type STREQUAL "INTERFACE_LIBRARY")
    set(${result} "" PARENT_SCOPE)
    return()
  endif()
  get_target_property(all "${target}" SOURCES)
  _device_tidy_is_own("${target}" own)
  set(sources)
  if(NOT all)
    set(all)
  endif()
  foreach(source IN LISTS all)
    if(source MATCHES "^\\$<TARGET_OBJECTS:")
      continue() # another part of the program
    elseif(source MATCHES "\\$<")
      message(WARNING "device_tidy_add_check: ${target} has the source ${source}, which is known only when the build "
                      "is generated; it is left out.")
      continue()
    endif()
    _device_tidy_source_path("${target}" "${source}" path)
    get_source_file_property(headerOnly "${path}" TARGET_DIRECTORY "${target}" HEADER_FILE_ONLY)
    get_source_file_property(language "${path}" TARGET_DIRECTORY "${target}" LANGUAGE)
    if(NOT language AND path MATCHES "\\.(C|CPP|c\\+\\+|cc|cpp|cxx)$")
      set(language CXX) # CMake has not looked at this one yet
    endif()
    if(headerOnly OR NOT language STREQUAL "CXX" OR path MATCHES "\\.(h|hh|hpp|hxx|h\\+\\+|cuh|inl|ipp|tpp)$")
      continue()
    endif()
    # A target of the project may compile a file of somebody else. A target of somebody else's was asked for.
    _device_tidy_is_vendored("${path}" vendored)
    if(NOT vendored OR NOT own)
      list(APPEND sources "${path}")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES sources)
  set(${result} "${sources}" PARENT_SCOPE)
endfunction()

# Facts lie below device-tidy/<target>.facts in the build tree as the source lies in the project.
function(_device_tidy_facts_name target source result)
  cmake_path(IS_PREFIX CMAKE_BINARY_DIR "${source}" NORMALIZE isBuilt)
  cmake_path(IS_PREFIX CMAKE_SOURCE_DIR "${source}" NORMALIZE isOwn)
  if(isBuilt)
    file(RELATIVE_PATH place "${CMAKE_BINARY_DIR}" "${source}")
    set(place "build/${place}")
  elseif(isOwn)
    file(RELATIVE_PATH place "${CMAKE_SOURCE_DIR}" "${source}")
  else()
    string(MD5 place "${source}")
  endif()
  set(${result} "${CMAKE_BINARY_DIR}/device-tidy/${target}.facts/${place}.facts" PARENT_SCOPE)
endfunction()

# A copy of compile_commands.json that changes only when its content does: CMake writes that file anew whenever it is
# run, and facts need to be written anew only when a command is another one.
function(_device_tidy_commands result)
  set(copy "${CMAKE_BINARY_DIR}/device-tidy/compile_commands.json")
  set(${result} "${copy}" PARENT_SCOPE)
  if(TARGET device-tidy-commands)
    return()
  endif()
  add_custom_command(
    OUTPUT "${copy}"
    COMMAND "${CMAKE_COMMAND}" -E copy_if_different "${CMAKE_BINARY_DIR}/compile_commands.json" "${copy}"
    DEPENDS "${CMAKE_BINARY_DIR}/compile_commands.json"
    COMMENT "Comparing the compile commands"
    VERBATIM)
  add_custom_target(device-tidy-commands DEPENDS "${copy}")
endfunction()

cmake_policy(POP)
