// Tensors that are made once for each device that asks, and kept under a key made of it.
#include "../cases.h"
#include <torch/torch.h>

#include <map>
#include <string>
#include <unordered_map>
#include <utility>

namespace {

const torch::Device kGpu(torch::kCUDA, 0);

struct FrequenciesImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor &x) {
    auto found = cache.find(x.device().str());
    if (found == cache.end())
      found = cache.emplace(x.device().str(), torch::arange(x.size(-1), x.options())).first;
    return x * found->second;
  }
  std::unordered_map<std::string, torch::Tensor> cache;
};
TORCH_MODULE(Frequencies);

struct HostFrequenciesImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor &x) {
    auto found = cache.find(x.device().str());
    if (found == cache.end())
      found = cache.emplace(x.device().str(), torch::arange(x.size(-1))).first;
    return x * found->second; // [[device-mixed-op]]
  }
  std::unordered_map<std::string, torch::Tensor> cache;
};
TORCH_MODULE(HostFrequencies);

class Levels {
public:
  torch::Tensor on(torch::Device device) {
    auto it = cache.find(device);
    if (it == cache.end())
      it = cache.emplace(device, torch::tensor({0.1, 0.5, 0.9}).to(device)).first;
    return it->second;
  }

private:
  std::unordered_map<torch::Device, torch::Tensor> cache;
};

// Kept by length and device.
class Masks {
public:
  torch::Tensor on(int64_t length, torch::Device device) {
    const std::string key = std::to_string(length) + "@" + device.str();
    if (!cache.count(key))
      cache[key] = torch::ones({length, length}, device).tril();
    return cache[key];
  }

private:
  std::map<std::string, torch::Tensor> cache;
};

class PairMasks {
public:
  torch::Tensor on(int64_t length, torch::Device device) {
    const auto key = std::make_pair(length, device.str());
    auto it = cache.find(key);
    if (it == cache.end())
      it = cache.emplace(key, torch::ones({length, length}, device).tril()).first;
    return it->second;
  }

private:
  std::map<std::pair<int64_t, std::string>, torch::Tensor> cache;
};

} // namespace

void frequencies_ok() {
  Frequencies frequencies;
  frequencies(torch::ones({2, 3}));
  frequencies(torch::ones({2, 3}, kGpu));
  frequencies(torch::ones({2, 3}));
}

void frequencies_bad() {
  HostFrequencies frequencies;
  frequencies(torch::ones({2, 3}, kGpu));
}

void levels_ok() {
  Levels levels;
  auto host = torch::ones({3}) * levels.on(torch::kCPU);
  for (int i = 0; i < static_cast<int>(torch::cuda::device_count()); ++i) {
    const torch::Device device(torch::kCUDA, i);
    auto there = torch::ones({3}, device) * levels.on(device);
  }
  host = host * levels.on(host.device());
}

void levels_bad() {
  Levels levels;
  auto host = torch::ones({3}) * levels.on(kGpu); // [[device-mixed-op]]
}

void masks_ok() {
  Masks masks;
  for (auto device : {torch::Device(torch::kCPU), kGpu})
    for (int length = 2; length < 5; ++length)
      auto scores = torch::ones({length, length}, device) * masks.on(length, device);
}

void masks_bad() {
  Masks masks;
  auto scores = torch::ones({3, 3}) * masks.on(3, kGpu); // [[device-mixed-op]]
}

void pair_masks_ok() {
  PairMasks masks;
  for (auto device : {torch::Device(torch::kCPU), kGpu})
    for (int length = 2; length < 5; ++length)
      auto scores = torch::ones({length, length}, device) * masks.on(length, device);
}

void pair_masks_bad() {
  PairMasks masks;
  auto scores = torch::ones({3, 3}, kGpu) * masks.on(3, torch::kCPU); // [[device-mixed-op]]
}

DT_MAIN(frequencies_ok, frequencies_bad, levels_ok, levels_bad, masks_ok, masks_bad, pair_masks_ok, pair_masks_bad)
