#pragma once

#include <torch/torch.h>

#include <cstring>
#include <limits>
#include <vector>

namespace asr {

template <typename T>
std::vector<T> ToVector(const torch::Tensor& t) {
  std::vector<T> out(t.numel());
  const auto dense = t.contiguous();
  std::memcpy(out.data(), dense.data_ptr<T>(), out.size() * sizeof(T)); // [[device-host-access]]
  return out;
}

// True at the frames behind the end of an utterance.
inline torch::Tensor MakePadMask(const std::vector<int64_t>& lengths, int64_t max_len,
                                 torch::Device device = torch::kCPU) {
  const auto ends = torch::tensor(lengths, torch::dtype(torch::kLong).device(device));
  return torch::arange(max_len, ends.options()).unsqueeze(0) >= ends.unsqueeze(1);
}

inline torch::Tensor LogAdd(const torch::Tensor& a, const torch::Tensor& b) {
  const auto top = torch::maximum(a, b);
  return top + torch::log(torch::exp(a - top) + torch::exp(b - top));
}

constexpr float kLogZero = -1e10f;

} // namespace asr
