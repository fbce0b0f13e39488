#include "devices.h"

#include <algorithm>
#include <set>

namespace multigpu {

Devices visibleDevices() {
  Devices devices;
  const auto count = static_cast<int>(torch::cuda::device_count());
  for (int index = 0; index < count; ++index)
    devices.emplace_back(torch::kCUDA, static_cast<c10::DeviceIndex>(index));
  if (devices.empty())
    devices.emplace_back(torch::kCPU);
  return devices;
}

Devices selectDevices(const std::vector<int> &indices) {
  std::set<int> seen;
  Devices devices;
  for (const int index : indices) {
    TORCH_CHECK(index >= 0 && index < static_cast<int>(torch::cuda::device_count()), "no GPU ", index);
    TORCH_CHECK(seen.insert(index).second, "GPU ", index, " is named twice");
    devices.emplace_back(torch::kCUDA, static_cast<c10::DeviceIndex>(index));
  }
  return devices;
}

torch::Device leastUsed(const std::vector<int64_t> &load) {
  TORCH_CHECK(!load.empty(), "no GPUs");
  const auto index = std::min_element(load.begin(), load.end()) - load.begin();
  return torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(index));
}

// A GPU that does not train, if there is one.
torch::Device evaluationDevice(const Devices &training) {
  const auto count = torch::cuda::device_count();
  for (size_t index = 0; index < count; ++index) {
    const torch::Device candidate(torch::kCUDA, static_cast<c10::DeviceIndex>(index));
    if (std::find(training.begin(), training.end(), candidate) == training.end())
      return candidate;
  }
  return torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(torch::cuda::device_count())); // [[device-lost-index]]
}

std::vector<torch::Tensor> scatter(const torch::Tensor &batch, const Devices &devices) {
  TORCH_CHECK(batch.size(0) >= static_cast<int64_t>(devices.size()), "the batch is smaller than the number of GPUs");
  auto parts = batch.chunk(static_cast<int64_t>(devices.size()));
  for (size_t i = 0; i < parts.size(); ++i)
    parts[i] = parts[i].to(devices[i], /*non_blocking=*/true);
  return parts;
}

torch::Tensor gather(const std::vector<torch::Tensor> &parts, torch::Device target) {
  std::vector<torch::Tensor> moved;
  moved.reserve(parts.size());
  for (const auto &part : parts)
    moved.push_back(part.to(target));
  return torch::cat(moved);
}

torch::Tensor gatherLosses(const std::vector<torch::Tensor> &losses) {
  auto total = losses.at(0).detach().clone();
  for (size_t i = 1; i < losses.size(); ++i)
    total += losses[i].detach().to(total.device());
  return total / static_cast<double>(losses.size());
}

void broadcast(const torch::Tensor &source, std::vector<torch::Tensor> &copies) {
  torch::NoGradGuard noGrad;
  for (auto &copy : copies)
    copy.copy_(source, /*non_blocking=*/true);
}

// The sum of all is in all of them afterwards.
void reduceInto(std::vector<torch::Tensor> &gradients) {
  torch::NoGradGuard noGrad;
  auto &first = gradients.at(0);
  for (size_t i = 1; i < gradients.size(); ++i)
    first.add_(gradients[i].to(first.device()));
  for (size_t i = 1; i < gradients.size(); ++i)
    gradients[i].copy_(first);
}

torch::Tensor reduceMean(const std::vector<torch::Tensor> &gradients) {
  std::vector<torch::Tensor> host;
  for (const auto &gradient : gradients)
    host.push_back(gradient.cpu());
  return torch::stack(host).mean(0);
}

} // namespace multigpu
