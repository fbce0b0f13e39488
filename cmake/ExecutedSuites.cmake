# The labelled cases and the five systems, compiled and run on virtual GPUs: what the analyzer is held to is true.

set(executed_suites_test "${CMAKE_CURRENT_LIST_DIR}/../test")

# add_executed_suites([ARGUMENTS OF execute_cases.py...])
function(add_executed_suites)
  find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
  add_test(NAME cases-executed
    COMMAND Python3::Interpreter "${executed_suites_test}/cases/execute_cases.py"
            --preload "$<TARGET_FILE:virtual_cuda>" --compiler "${CMAKE_CXX_COMPILER}"
            --build-dir "${CMAKE_CURRENT_BINARY_DIR}/case-programs" ${ARGN})
  set_tests_properties(cases-executed PROPERTIES LABELS slow TIMEOUT 7200)
  # The systems are no part of the default build: the suite builds them first.
  add_test(NAME systems-built
    COMMAND "${CMAKE_COMMAND}" --build "${CMAKE_BINARY_DIR}" --target systems device-run virtual_cuda)
  set_tests_properties(systems-built PROPERTIES LABELS slow FIXTURES_SETUP systems-built TIMEOUT 3600)
  add_test(NAME systems-executed
    COMMAND Python3::Interpreter "${executed_suites_test}/systems/execute_systems.py"
            --device-run "$<TARGET_FILE:device-run>" --programs "${CMAKE_BINARY_DIR}/bin/systems")
  set_tests_properties(systems-executed PROPERTIES LABELS slow FIXTURES_REQUIRED systems-built TIMEOUT 3600)
endfunction()

# add_python_systems(INTERPRETER): the five systems in Python, with the libraries of their time. pip has those for Python
# 3.11, and all of them run with PyTorch 2.13.
function(add_python_systems interpreter)
  execute_process(COMMAND "${interpreter}" -c
    "import sys, torch; print('%d.%d' % sys.version_info[:2], '.'.join(torch.__version__.split('.')[:2]))"
    OUTPUT_VARIABLE versions OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT versions STREQUAL "3.11 2.13")
    message(STATUS "The five systems in Python are left out: they need Python 3.11 with PyTorch 2.13")
    return()
  endif()
  add_test(NAME systems-python-executed
    COMMAND Python3::Interpreter "${executed_suites_test}/systems-python/execute_systems.py"
            --device-run "$<TARGET_FILE:device-run>" --python "${interpreter}"
            --work "${CMAKE_BINARY_DIR}/systems-python")
  set_tests_properties(systems-python-executed PROPERTIES LABELS slow TIMEOUT 7200)
endfunction()
