# Lets ccache serve one clone what another has compiled: paths below the sources count as relative ones.
# A precompiled header names its headers by absolute paths, so targets that use one stay with their own clone.
function(dt_share_compilations directory)
  if(NOT DEVICE_TIDY_CCACHE OR NOT CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache")
    return()
  endif()
  get_property(targets DIRECTORY "${directory}" PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(own ${target} PRECOMPILE_HEADERS)
    get_target_property(reused ${target} PRECOMPILE_HEADERS_REUSE_FROM)
    if(NOT own AND NOT reused)
      set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER
        "${CMAKE_COMMAND};-E;env;CCACHE_BASEDIR=${CMAKE_SOURCE_DIR};${CMAKE_CXX_COMPILER_LAUNCHER}")
    endif()
  endforeach()
  get_property(folders DIRECTORY "${directory}" PROPERTY SUBDIRECTORIES)
  foreach(folder IN LISTS folders)
    dt_share_compilations("${folder}")
  endforeach()
endfunction()

dt_share_compilations("${CMAKE_SOURCE_DIR}")
