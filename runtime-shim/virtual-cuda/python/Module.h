//===- Module.h - torch._C of a CUDA build ----------------------*- C++ -*-===//
//
// What torch._C has in a CUDA build and lacks in a CPU build, under the same names, so that PyTorch's own
// torch/cuda/*.py runs unchanged. virtual_cuda_python/__init__.py moves it all to torch._C.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace vcuda::python {

void addDevices(pybind11::module_ &module);
void addStreams(pybind11::module_ &module);
void addMemory(pybind11::module_ &module);
void addTensorTypes(pybind11::module_ &module);
void addProcessGroup(pybind11::module_ &module);
void addFrames(pybind11::module_ &module);
void addSharing(pybind11::module_ &module);

} // namespace vcuda::python
