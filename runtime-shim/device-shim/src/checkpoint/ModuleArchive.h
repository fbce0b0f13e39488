//===- ModuleArchive.h - modules and archives -------------------*- C++ -*-===//
//
// The parameters and buffers of a module in an archive, as torch::save() writes them and torch::load() reads
// them, with values that need not be in the module.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/serialize/archive.h>

#include <map>
#include <string>

namespace device_shim::detail {

/// Tensors by their names in the root, as in named_parameters().
using Named = std::map<std::string, at::Tensor>;

/// Writes what Module::save() would, with `values` in the place of parameters and buffers of these names.
void writeModule(const torch::nn::Module &root, const Named &values,
                 torch::serialize::OutputArchive &archive);

/// What an archive has for a module.
struct ModuleValues {
  Named parameters, buffers;
};
/// \throws Error for a buffer that is missing or has another shape; `path` is the file's, for messages.
ModuleValues readModule(const torch::nn::Module &root, torch::serialize::InputArchive &archive,
                        const std::string &path);

/// \throws Error naming the tensor and both shapes where it has not the shape `wanted`.
void requireSizes(at::IntArrayRef wanted, const at::Tensor &found, const std::string &name,
                  const std::string &path);

/// Overwrites the buffers that are in `values`.
void setBuffers(const torch::nn::Module &root, const Named &values);

/// A merged layer's base holds the correction, and its adapters hold it again. \throws UsageError
void requireUnmerged(const torch::nn::Module &root);

} // namespace device_shim::detail
