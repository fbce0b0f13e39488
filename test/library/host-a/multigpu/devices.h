#pragma once

#include <torch/torch.h>

#include <vector>

namespace multigpu {

using Devices = std::vector<torch::Device>;

// The GPUs of the machine, or those that the user has named.
Devices visibleDevices();
Devices selectDevices(const std::vector<int> &indices);
torch::Device leastUsed(const std::vector<int64_t> &load);
torch::Device evaluationDevice(const Devices &training);

std::vector<torch::Tensor> scatter(const torch::Tensor &batch, const Devices &devices);
torch::Tensor gather(const std::vector<torch::Tensor> &parts, torch::Device target);
torch::Tensor gatherLosses(const std::vector<torch::Tensor> &losses);
void broadcast(const torch::Tensor &source, std::vector<torch::Tensor> &copies);
void reduceInto(std::vector<torch::Tensor> &gradients);
torch::Tensor reduceMean(const std::vector<torch::Tensor> &gradients);

} // namespace multigpu
