// Data-parallel training over c10d and Gloo: the rank's environment, the process group, gradient
// averaging. The only header that knows which LibTorch version it is compiled against.
#pragma once

#ifndef USE_C10D_GLOO
#define USE_C10D_GLOO
#endif

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <torch/torch.h>
#include <torch/version.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace systems {

using ProcessGroupPtr = c10::intrusive_ptr<c10d::ProcessGroupGloo>;

inline std::string environment(const char *name, const std::string &fallback) {
  const char *value = std::getenv(name);
  return value ? value : fallback;
}

// The variables torchrun sets; without them the program is the only rank.
struct RankInfo {
  int rank = 0;
  int localRank = 0;
  int worldSize = 1;
  std::string masterAddress = "127.0.0.1";
  // 0 asks for any free port, which only a single rank can use.
  int masterPort = 0;

  static RankInfo fromEnvironment() {
    RankInfo info;
    info.rank = std::stoi(environment("RANK", "0"));
    info.localRank = std::stoi(environment("LOCAL_RANK", std::to_string(info.rank)));
    info.worldSize = std::stoi(environment("WORLD_SIZE", "1"));
    info.masterAddress = environment("MASTER_ADDR", "127.0.0.1");
    info.masterPort = std::stoi(environment("MASTER_PORT", info.worldSize > 1 ? "29500" : "0"));
    return info;
  }
};

inline c10d::TCPStoreOptions storeOptions(const RankInfo &info) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(info.masterPort);
  options.isServer = info.rank == 0;
  options.numWorkers = static_cast<size_t>(info.worldSize);
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
  // The libuv server is the default from 2.4 on, but distributions build LibTorch without libuv.
  options.useLibUV = false;
#endif
  return options;
}

inline bool &processGroupExists() {
  static bool exists = false;
  return exists;
}

// The loaders ask this before they spread a model over devices.
inline bool isDistributed() { return processGroupExists(); }

inline ProcessGroupPtr initProcessGroup(const RankInfo &info) {
  auto store = c10::make_intrusive<c10d::TCPStore>(info.masterAddress, storeOptions(info));
  auto options = c10d::ProcessGroupGloo::Options::create();
  options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(info.masterAddress));
  processGroupExists() = true;
  return c10::make_intrusive<c10d::ProcessGroupGloo>(store, info.rank, info.worldSize, options);
}

// The device that belongs to this rank alone.
inline torch::Device deviceOfRank(const RankInfo &info) {
  TORCH_CHECK(info.localRank < static_cast<int>(torch::cuda::device_count()), "local rank ", info.localRank,
              " has no device of its own: ", torch::cuda::device_count(), " are visible");
  return torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(info.localRank));
}

// Gloo works on host memory, so both collectives below stage explicitly.
inline torch::Tensor sumOverRanks(const ProcessGroupPtr &group, const torch::Tensor &value) {
  std::vector<torch::Tensor> staged = {value.detach().to(torch::kCPU).clone()};
  group->allreduce(staged)->wait();
  return staged.front();
}

// Every rank starts from rank 0's weights.
inline void broadcastParameters(const ProcessGroupPtr &group, torch::nn::Module &model) {
  torch::NoGradGuard noGrad;
  for (auto &parameter : model.parameters()) {
    std::vector<torch::Tensor> staged = {parameter.detach().to(torch::kCPU).clone()};
    group->broadcast(staged)->wait();
    parameter.copy_(staged.front());
  }
}

inline void averageGradients(const ProcessGroupPtr &group, torch::nn::Module &model) {
  torch::NoGradGuard noGrad;
  for (auto &parameter : model.parameters()) {
    auto gradient = parameter.grad();
    if (gradient.defined())
      gradient.copy_(sumOverRanks(group, gradient) / group->getSize());
  }
}

} // namespace systems
