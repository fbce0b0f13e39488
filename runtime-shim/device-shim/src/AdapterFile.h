// The file of low-rank adapters: tensors by name, nothing else.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

namespace device_shim::detail {

/// Whether a parameter of this name belongs to an adapter.
bool isAdapter(const std::string &name);

/// Keys are names as in named_parameters(). \throws c10::Error when the file cannot be written.
void writeAdapters(const std::map<std::string, at::Tensor> &adapters, const std::string &path);

} // namespace device_shim::detail
