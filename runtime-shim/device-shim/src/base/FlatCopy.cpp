#include "base/FlatCopy.h"

#include <ATen/ATen.h>

#include <map>
#include <utility>

namespace device_shim::detail {

std::vector<std::vector<at::Tensor>> chunksOfOneKind(const std::vector<at::Tensor> &tensors, int64_t bytes) {
  using Kind = std::pair<std::string, at::ScalarType>;
  std::vector<std::vector<at::Tensor>> chunks;
  std::map<Kind, std::pair<size_t, int64_t>> open; // chunk and bytes in it
  for (const auto &tensor : tensors) {
    if (!tensor.defined() || tensor.numel() == 0)
      continue;
    const Kind kind{tensor.device().str(), tensor.scalar_type()};
    const int64_t size = tensor.numel() * static_cast<int64_t>(tensor.element_size());
    auto found = open.find(kind);
    if (found == open.end() || found->second.second + size > bytes) {
      chunks.emplace_back();
      found = open.insert_or_assign(kind, std::make_pair(chunks.size() - 1, int64_t(0))).first;
    }
    chunks[found->second.first].push_back(tensor);
    found->second.second += size;
  }
  return chunks;
}

at::Tensor flattened(const std::vector<at::Tensor> &tensors) {
  at::NoGradGuard noGrad;
  std::vector<at::Tensor> parts;
  parts.reserve(tensors.size());
  for (const auto &tensor : tensors)
    parts.push_back(tensor.detach().reshape({-1}));
  return at::cat(parts);
}

void copyBack(const at::Tensor &flat, const std::vector<at::Tensor> &tensors) {
  at::NoGradGuard noGrad;
  int64_t offset = 0;
  for (const auto &tensor : tensors) {
    tensor.detach().copy_(flat.narrow(0, offset, tensor.numel()).view(tensor.sizes()));
    offset += tensor.numel();
  }
}

} // namespace device_shim::detail
