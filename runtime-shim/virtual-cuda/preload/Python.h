//===- Python.h - virtual GPUs in a Python interpreter ----------*- C++ -*-===//
//
// Python loads LibTorch long after a process has started, with `import torch`.
//
//===----------------------------------------------------------------------===//
#pragma once

namespace vcuda {

/// Where this process is a Python interpreter, or has one: the Python half of the virtual GPUs, in the folder
/// virtual_cuda_python beside this library, is loaded right before `import torch`. Without `import torch`
/// nothing happens. Uses an audit hook, so no path, no environment variable and no sitecustomize is touched.
void watchPythonImports();

} // namespace vcuda
