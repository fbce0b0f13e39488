# Man pages and shell completions, made from what the programs print for --help.

set(manualDir "${PROJECT_BINARY_DIR}/manual")
set(manualPages)

# device_tidy_manual(TARGET SUMMARY [OPTION...]): the manual of one program.
function(device_tidy_manual target summary)
  set(script "${PROJECT_SOURCE_DIR}/cmake/manual/make_manual.py")
  set(outputs "${manualDir}/${target}.1" "${manualDir}/${target}.bash" "${manualDir}/_${target}"
              "${manualDir}/${target}.fish")
  add_custom_command(
    OUTPUT ${outputs}
    COMMAND Python3::Interpreter "${script}" "$<TARGET_FILE:${target}>" "${manualDir}" --summary "${summary}" ${ARGN}
    DEPENDS "${script}" ${target}
    COMMENT "Generating the manual of ${target}"
    VERBATIM)
  add_custom_target(${target}-manual ALL DEPENDS ${outputs})
  install(FILES "${manualDir}/${target}.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT tools OPTIONAL)
  set(share "${CMAKE_INSTALL_DATADIR}")
  install(FILES "${manualDir}/${target}.bash" RENAME ${target}
    DESTINATION "${share}/bash-completion/completions" COMPONENT tools OPTIONAL)
  # Debian's zsh and fish look for what packages bring in folders of their own.
  install(FILES "${manualDir}/_${target}" DESTINATION "${share}/zsh/vendor-completions" COMPONENT tools OPTIONAL)
  install(FILES "${manualDir}/${target}.fish" DESTINATION "${share}/fish/vendor_completions.d" COMPONENT tools OPTIONAL)
endfunction()

device_tidy_manual(device-tidy "finds tensors on the wrong device in C++ code that uses LibTorch" --checks)
device_tidy_manual(device-run "starts the ranks of a distributed LibTorch program, on real or virtual GPUs")
