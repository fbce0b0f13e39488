//===- DistinctParameters.h - each parameter once ---------------*- C++ -*-===//
//
// The parameters of a module, each once.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <string>
#include <vector>

namespace device_shim::detail {

struct DistinctParameter {
  std::string name; ///< the one it was registered under first
  at::Tensor value;
  std::vector<std::string> aliases; ///< further names
};

/// In the order of their first registration. Module::named_parameters() of the C++ frontend lists a tied
/// parameter under each of its names, unlike that of Python. \param path of the module, and \param aliases
/// its further ones: names begin with them; "" for the root.
std::vector<DistinctParameter> distinctParameters(const torch::nn::Module &module,
                                                  const std::string &path = "",
                                                  const std::vector<std::string> &aliases = {});

} // namespace device_shim::detail
