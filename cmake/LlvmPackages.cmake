# Finds the LLVM and clang of one major version in Debian's layout, /usr/lib/llvm-N.

if(NOT DEVICE_TIDY_LLVM IN_LIST DEVICE_TIDY_SUPPORTED_LLVM)
  message(FATAL_ERROR "DEVICE_TIDY_LLVM=${DEVICE_TIDY_LLVM} is not supported; "
                      "pass -DDEVICE_TIDY_LLVM=22 or -DDEVICE_TIDY_LLVM=19.")
endif()

set(DEVICE_TIDY_LLVM_ROOT "/usr/lib/llvm-${DEVICE_TIDY_LLVM}" CACHE PATH "Where LLVM is installed")
set(packages LLVM)
if(DEVICE_TIDY_CXX_FRONTEND)
  list(APPEND packages Clang)
endif()
foreach(package IN LISTS packages)
  string(TOLOWER ${package} folder)
  find_package(${package} CONFIG QUIET NO_DEFAULT_PATH PATHS "${DEVICE_TIDY_LLVM_ROOT}/lib/cmake/${folder}")
  if(NOT ${package}_FOUND)
    message(FATAL_ERROR "No ${package} ${DEVICE_TIDY_LLVM} in ${DEVICE_TIDY_LLVM_ROOT}. "
                        "Run scripts/install-deps.sh --llvm ${DEVICE_TIDY_LLVM}, "
                        "or pass -DDEVICE_TIDY_LLVM_ROOT=PREFIX.")
  endif()
endforeach()
if(NOT LLVM_VERSION_MAJOR EQUAL DEVICE_TIDY_LLVM)
  message(FATAL_ERROR "${DEVICE_TIDY_LLVM_ROOT} holds LLVM ${LLVM_VERSION_MAJOR}, "
                      "but DEVICE_TIDY_LLVM is ${DEVICE_TIDY_LLVM}; make the two agree.")
endif()
message(STATUS "LLVM ${LLVM_PACKAGE_VERSION} in ${DEVICE_TIDY_LLVM_ROOT}, compiler ${CMAKE_CXX_COMPILER}")

# The analyzer parses with the builtin headers (stddef.h and friends) of the same clang.
set(DEVICE_TIDY_RESOURCE_DIR "${LLVM_LIBRARY_DIR}/clang/${LLVM_VERSION_MAJOR}")
if(DEVICE_TIDY_CXX_FRONTEND AND NOT EXISTS "${DEVICE_TIDY_RESOURCE_DIR}/include/stddef.h")
  message(FATAL_ERROR "clang's builtin headers are missing in ${DEVICE_TIDY_RESOURCE_DIR}; "
                      "install libclang-common-${DEVICE_TIDY_LLVM}-dev.")
endif()

# Where libc++ is installed, its cxxabi.h lies in LLVM's folder, and would be taken for that of the compiler's own
# standard library. A folder of ours then shows what is LLVM's and nothing else.
set(llvmIncludes ${LLVM_INCLUDE_DIRS} ${CLANG_INCLUDE_DIRS})
list(REMOVE_DUPLICATES llvmIncludes)
foreach(folder IN LISTS llvmIncludes)
  if(EXISTS "${folder}/cxxabi.h")
    set(shown "${PROJECT_BINARY_DIR}/llvm-include")
    file(MAKE_DIRECTORY "${shown}")
    foreach(part IN ITEMS clang clang-c clang-tidy llvm llvm-c)
      if(EXISTS "${folder}/${part}")
        file(CREATE_LINK "${folder}/${part}" "${shown}/${part}" SYMBOLIC)
      endif()
    endforeach()
    list(TRANSFORM llvmIncludes REPLACE "^${folder}$" "${shown}")
  endif()
endforeach()

# Everything that includes llvm/ or clang/ links this target.
add_library(dt_llvm INTERFACE)
target_include_directories(dt_llvm SYSTEM INTERFACE ${llvmIncludes})
separate_arguments(llvmDefinitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
target_compile_definitions(dt_llvm INTERFACE ${llvmDefinitions})
if(DEVICE_TIDY_CXX_FRONTEND)
  target_link_libraries(dt_llvm INTERFACE clang-cpp LLVM)
else()
  # Files, JSON, YAML and the like become part of the program, with the rest of the C++ library.
  target_link_libraries(dt_llvm INTERFACE $<TARGET_NAME_IF_EXISTS:LLVMSupportLSP> LLVMSupport)
  target_link_options(dt_llvm INTERFACE -static-libstdc++ -static-libgcc -Wl,--gc-sections -Wl,--as-needed -Wl,--build-id)
endif()
# What one supported release deprecates, another does not have a replacement for yet.
target_compile_options(dt_llvm INTERFACE -Wno-deprecated-declarations)
if(NOT LLVM_ENABLE_RTTI)
  # Debian's LLVM has run-time type information, other builds may not: a class derived from one of
  # clang's would then look for type information that is not there.
  target_compile_options(dt_llvm INTERFACE -fno-rtti)
endif()
