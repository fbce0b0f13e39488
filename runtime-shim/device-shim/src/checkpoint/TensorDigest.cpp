#include "checkpoint/TensorDigest.h"

#include <ATen/ATen.h>

#include <cstdint>

namespace device_shim::detail {
namespace {

at::ScalarType integersFor(const at::Tensor &tensor) {
  switch (tensor.element_size()) {
  case 1:
    return at::kByte;
  case 2:
    return at::kShort;
  case 4:
    return at::kInt;
  default:
    return at::kLong;
  }
}

// Of integers, so that neither the order of the additions matters nor a NaN.
int64_t sumOfBits(const at::Tensor &tensor) {
  const auto flat = tensor.detach().contiguous().view({-1});
  return flat.view(integersFor(flat)).sum(at::kLong).item<int64_t>();
}

} // namespace

std::string digestOf(const std::map<std::string, at::Tensor> &tensors) {
  std::string text;
  for (const auto &[name, tensor] : tensors)
    if (tensor.defined() && tensor.numel() > 0)
      text += name + " " + std::to_string(sumOfBits(tensor)) + "; ";
  return text;
}

} // namespace device_shim::detail
