// Data-parallel training over c10d: the rank's environment, the process group, gradient averaging. The only
// header that knows which LibTorch version it is compiled against, and whether ranks talk through NCCL (where
// USE_C10D_NCCL is defined) or Gloo.
#pragma once

#ifdef USE_C10D_NCCL
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#else
#ifndef USE_C10D_GLOO
#define USE_C10D_GLOO
#endif
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#endif
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <torch/torch.h>
#include <torch/version.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace systems {

#ifdef USE_C10D_NCCL
using ProcessGroupPtr = c10::intrusive_ptr<c10d::ProcessGroupNCCL>;
#else
using ProcessGroupPtr = c10::intrusive_ptr<c10d::ProcessGroupGloo>;
#endif

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
  processGroupExists() = true;
#ifdef USE_C10D_NCCL
  const auto index = static_cast<c10::DeviceIndex>(info.localRank);
  c10::impl::VirtualGuardImpl(torch::kCUDA).setDevice(torch::Device(torch::kCUDA, index));
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(store, info.rank, info.worldSize);
#else
  auto options = c10d::ProcessGroupGloo::Options::create();
  options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(info.masterAddress));
  return c10::make_intrusive<c10d::ProcessGroupGloo>(store, info.rank, info.worldSize, options);
#endif
}

// The device that belongs to this rank alone.
inline torch::Device deviceOfRank(const RankInfo &info) {
  TORCH_CHECK(info.localRank < static_cast<int>(torch::cuda::device_count()), "local rank ", info.localRank,
              " has no device of its own: ", torch::cuda::device_count(), " are visible");
  return torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(info.localRank));
}

// Where collectives take their tensors: NCCL on the rank's GPU, Gloo in host memory, so those below stage
// explicitly.
#ifdef USE_C10D_NCCL
constexpr auto kWire = torch::kCUDA;
#else
constexpr auto kWire = torch::kCPU;
#endif

inline torch::Tensor sumOverRanks(const ProcessGroupPtr &group, const torch::Tensor &value) {
  std::vector<torch::Tensor> staged = {value.detach().to(kWire).clone()};
  group->allreduce(staged)->wait();
  return staged.front();
}

// Every rank starts from rank 0's weights.
inline void broadcastParameters(const ProcessGroupPtr &group, torch::nn::Module &model) {
  torch::NoGradGuard noGrad;
  for (auto &parameter : model.parameters()) {
    std::vector<torch::Tensor> staged = {parameter.detach().to(kWire).clone()};
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
