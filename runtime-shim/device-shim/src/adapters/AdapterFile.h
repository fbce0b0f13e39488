//===- AdapterFile.h - the file of low-rank adapters ------------*- C++ -*-===//
//
// The file of low-rank adapters: tensors by name, and by what each layer multiplies its correction.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/serialize/archive.h>

#include <map>
#include <string>

namespace device_shim::detail {

/// Whether a parameter of this name belongs to an adapter.
bool isAdapter(const std::string &name);

/// Adds the scale of each LoraLinear in `module`, a double of no dimensions, under its path.
void addScales(const torch::nn::Module &module, std::map<std::string, at::Tensor> &adapters);
/// Files of other programs may hold no scales. \throws Error for a layer whose scale is another one in
/// `file`.
void requireSameScales(const torch::nn::Module &module, torch::serialize::InputArchive &archive,
                       const std::string &file);

/// Keys are names as in named_parameters(). \throws Error, see writeArchive().
void writeAdapters(const std::map<std::string, at::Tensor> &adapters, const std::string &path);

} // namespace device_shim::detail
