# What is found on machines that are made of empty files here:
#   cmake -DBUILD=DIR -DWORK=DIR -DCOMPILER=CXX -DGENERATOR=NAME -P run.cmake
cmake_minimum_required(VERSION 3.18)
set(here "${CMAKE_CURRENT_LIST_DIR}")

# make(FOLDER FILES...)
function(make folder)
  foreach(file ${ARGN})
    file(WRITE "${WORK}/${folder}/${file}" "")
  endforeach()
endfunction()

# make_torch(FOLDER CUDA): the folder torch/ of a wheel for this version of CUDA.
function(make_torch folder cuda)
  make(${folder}/torch include/torch/csrc/api/include/torch/torch.h)
  foreach(library torch torch_cpu c10 torch_cuda c10_cuda)
    make(${folder}/torch lib/lib${library}.so)
  endforeach()
  file(WRITE "${WORK}/${folder}/torch/version.py" "__version__ = '2.0'\ncuda: Optional[str] = '${cuda}'\n")
endfunction()

# make_cuda(FOLDER VERSION): all that PyTorch's own wheels bring of CUDA's headers.
function(make_cuda folder version)
  make(${folder} cublas_v2.h cusparse.h cusolverDn.h)
  file(WRITE "${WORK}/${folder}/cuda_runtime_api.h" "#define CUDART_VERSION  ${version}\n")
endfunction()

# configure(PROJECT OPTIONS...): sets output and code.
function(configure project)
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -E env --unset=TORCH_ROOT --unset=CUDA_HOME --unset=CUDA_PATH --unset=NCCL_HOME
            ${environment} "${CMAKE_COMMAND}" -S "${here}/${project}" -B "${WORK}/build-${project}"
            -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DDEVICE_SHIM_GLOO_INCLUDE=${gloo}" ${ARGN}
    RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  # CMake breaks the lines of its messages.
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  set(output "${output}" PARENT_SCOPE)
  set(code "${code}" PARENT_SCOPE)
endfunction()

function(expect_code wanted)
  if(NOT code EQUAL wanted)
    message(SEND_ERROR "exit code ${code}:\n${output}")
  endif()
endfunction()

function(expect text)
  string(FIND "${output}" "${text}" at)
  if(at EQUAL -1)
    message(SEND_ERROR "expected '${text}' in:\n${output}")
  endif()
endfunction()

function(expect_no text)
  string(FIND "${output}" "${text}" at)
  if(NOT at EQUAL -1)
    message(SEND_ERROR "'${text}' must not be in:\n${output}")
  endif()
endfunction()

file(REMOVE_RECURSE "${WORK}")
make(gloo gloo/config.h)
set(gloo "${WORK}/gloo")

# NVIDIA's wheels for CUDA 13 as PyTorch brings them, and a toolkit beside them.
make_torch(site 13.0)
make_cuda(site/nvidia/cu13/include 13000)
make(site/nvidia/nccl/include nccl.h)
make_cuda(toolkit13/include 13010)
make(toolkit13/include crt/host_defines.h cccl/nv/target nccl.h)
set(environment "CUDA_HOME=${WORK}/toolkit13")
configure(build_part "-DTORCH_ROOT=${WORK}/site/torch")
expect_code(0)
expect("collectives: ${WORK}/gloo;${WORK}/site/nvidia/nccl/include;${WORK}/toolkit13/include;${WORK}/toolkit13/include/cccl | USE_C10D_GLOO;USE_C10D_NCCL")

# Without a toolkit the message names the wheels that are missing; with Gloo it is a warning.
set(environment "")
set(only_wheels "-DTORCH_ROOT=${WORK}/site/torch" "-DDEVICE_SHIM_CUDA_INCLUDE=${WORK}/site/nvidia/cu13/include")
configure(build_part ${only_wheels})
expect_code(0)
expect("built without NCCL: CUDA's headers were not found, or not all of them.")
expect("crt/host_defines.h (package nvidia-cuda-crt), nv/target (package nvidia-cuda-cccl).")
expect_no("USE_C10D_NCCL")
make(site/nvidia/cu13/include crt/host_defines.h cccl/nv/target)
configure(build_part ${only_wheels})
expect("USE_C10D_NCCL")
expect("${WORK}/site/nvidia/cu13/include/cccl")

# Headers of LibTorch's own CUDA are better than those of another one.
make_torch(old 12.4)
make_cuda(old/nvidia/cuda_runtime/include 12040)
make(old/nvidia/cuda_nvcc/include crt/host_defines.h)
make(old/nvidia/cuda_cccl/include nv/target)
make(old/nvidia/nccl/include nccl.h)
set(environment "CUDA_HOME=${WORK}/toolkit13")
configure(build_part "-DTORCH_ROOT=${WORK}/old/torch" -UDEVICE_SHIM_CUDA_INCLUDE)
expect_code(0)
expect("libtorch_cpu: ${WORK}/old/torch/include")
expect("${WORK}/old/nvidia/cuda_cccl/include")
expect_no("toolkit13")
make_torch(older 11.8)
configure(build_part "-DTORCH_ROOT=${WORK}/older/torch")
expect("This LibTorch is for CUDA 11, but the only complete headers are those of CUDA 13")

# Another LibTorch in the same build folder leaves nothing of the first one behind.
make_torch(cpu 12.4)
file(REMOVE "${WORK}/cpu/torch/lib/libtorch_cuda.so" "${WORK}/cpu/torch/lib/libc10_cuda.so")
configure(build_part "-DTORCH_ROOT=${WORK}/cpu/torch")
expect_code(0)
expect("libtorch_cpu: ${WORK}/cpu/torch/include")
expect("${WORK}/cpu/torch/lib/libtorch.so")
expect_no("${WORK}/old")
expect_no("libtorch_cuda.so")
expect_no("USE_C10D_NCCL")

# The installed package takes LibTorch alone, and a project may do without it.
execute_process(COMMAND "${CMAKE_COMMAND}" --install "${BUILD}" --component device_shim --prefix "${WORK}/prefix"
  RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
expect_code(0)
file(GLOB_RECURSE config "${WORK}/prefix/*/DeviceShimConfig.cmake")
get_filename_component(package "${config}" DIRECTORY)
set(gloo "")
set(environment "")
configure(package "-DDeviceShim_DIR=${package}" -DMODE=QUIET)
expect_code(0)
expect("found: 0")
expect_no("LibTorch")
configure(package "-DDeviceShim_DIR=${package}" -DMODE=)
expect_code(0)
expect("LibTorch is missing")
configure(package "-DDeviceShim_DIR=${package}" -DMODE=REQUIRED)
expect_code(1)
expect("LibTorch is missing (libtorch.so or torch/torch.h): install libtorch-dev")
configure(package "-DDeviceShim_DIR=${package}" -DMODE=REQUIRED "-DTORCH_ROOT=${WORK}/cpu/torch")
expect_code(0)
expect("found: 1")
