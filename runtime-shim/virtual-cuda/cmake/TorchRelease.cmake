# virtual_cuda_torch_release(NAME) sets NAME to the release of the LibTorch that is built for, such as 2.13.
function(virtual_cuda_torch_release name)
  find_file(VIRTUAL_CUDA_VERSION_HEADER NAMES torch/headeronly/version.h torch/csrc/api/include/torch/version.h
    PATHS "${DEVICE_SHIM_TORCH_INCLUDE}" /usr/include NO_DEFAULT_PATH REQUIRED NO_CACHE)
  file(STRINGS "${VIRTUAL_CUDA_VERSION_HEADER}" lines REGEX "define TORCH_VERSION_(MAJOR|MINOR) ")
  string(REGEX REPLACE "[^0-9;]" "" numbers "${lines}")
  list(JOIN numbers "." release)
  set(${name} "${release}" PARENT_SCOPE)
endfunction()
