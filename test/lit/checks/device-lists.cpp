// Devices that are elements of one list: two positions are two devices.
// REQUIRES: torch
// RUN: not %device-tidy --checks=device-mixed-op %s %torch | FileCheck %s --implicit-check-not=warning:
#include <torch/torch.h>

#include <vector>

using Devices = std::vector<torch::Device>;

torch::Tensor total(const torch::Tensor &x, const Devices &devices) {
  auto sum = torch::zeros({3}, devices[0]);
  for (const auto &device : devices)
    // CHECK: [[@LINE+1]]:9: warning: '+=' can get 'sum' on 'devices[0]' and 'x.to(device)' on 'devices[i]' [device-mixed-op]
    sum += x.to(device);
  return sum;
}

torch::Tensor movedTotal(const torch::Tensor &x, const Devices &devices) {
  auto sum = torch::zeros({3}, devices[0]);
  for (const auto &device : devices)
    sum += x.to(device).to(sum.device());
  return sum;
}

torch::Tensor ends(const torch::Tensor &x, const Devices &devices) {
  // CHECK: [[@LINE+1]]:32: warning: '+' can get 'x.to(devices.front())' on 'devices[0]' and 'x.to(devices.back())' on 'devices.back()' [device-mixed-op]
  return x.to(devices.front()) + x.to(devices.back());
}

torch::Tensor sameEnd(const torch::Tensor &x, const Devices &devices) {
  return x.to(devices.back()) + torch::ones({3}, devices.back());
}

class Shards {
public:
  explicit Shards(Devices devices) : devices_(std::move(devices)) {}
  std::vector<torch::Tensor> scatter(const torch::Tensor &x) const {
    auto parts = x.chunk(static_cast<int64_t>(devices_.size()));
    for (size_t i = 0; i < parts.size(); ++i)
      parts[i] = parts[i].to(devices_[i]);
    return parts;
  }
  torch::Tensor gather(const torch::Tensor &x) const {
    // CHECK: [[@LINE+1]]:12: warning: 'cat' can get 'scatter(x)' on 'devices[i]' and another element of 'scatter(x)' on 'devices[i - 1]' [device-mixed-op]
    return torch::cat(scatter(x));
  }
  torch::Tensor gatherOnFirst(const torch::Tensor &x) const {
    auto parts = scatter(x);
    for (auto &part : parts)
      part = part.to(devices_[0]);
    return torch::cat(parts);
  }
  torch::Tensor stacked(const torch::Tensor &x) const {
    std::vector<torch::Tensor> parts;
    for (const auto &device : devices_)
      parts.push_back(x.to(device));
    // CHECK: [[@LINE+1]]:12: warning: 'stack' can get 'parts' on 'devices[i]' and another element of 'parts' on 'devices[i - 1]' [device-mixed-op]
    return torch::stack(parts);
  }
  torch::Tensor stackedOnLast(const torch::Tensor &x) const {
    std::vector<torch::Tensor> parts;
    for (const auto &device : devices_)
      parts.push_back(x.to(device).sum().to(devices_.back()));
    return torch::stack(parts);
  }

private:
  Devices devices_;
};
