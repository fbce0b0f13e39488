// Fine-tunes a small vision-language model with a ZeRO-3 style optimizer: the fp32 master weights are
// flattened into sub-groups, every rank owns one partition of each, and a part of the sub-groups is
// offloaded to host memory. Gradients are unscaled and clipped by their global norm before the update.
//
//   finetune [--layers N] [--width N] [--steps N] [--batch N] [--clip NORM] [--offload-ratio R]

#include "../../common/Decoder.h"
#include "../../common/Distributed.h"
#include "../../common/Program.h"

#include <torch/torch.h>

#include <cmath>
#include <iostream>
#include <string>
#include <vector>

using namespace systems;

namespace {

struct OffloadConfig {
  std::string device = "cpu";
  // The share of the sub-groups that lives on `device`.
  double ratio = 0.5;
};

struct ZeroConfig {
  OffloadConfig offloadOptimizer;
  double learningRate = 1e-3;
  double lossScale = 1024;
  double clipGrad = 1.0;
};

// This rank's share of a few parameters, flattened; all four tensors live on one device.
struct SubGroup {
  std::vector<torch::Tensor> parameters;
  int64_t partitionSize = 0;
  torch::Tensor master;
  torch::Tensor grad;
  torch::Tensor momentum;
  torch::Tensor variance;
};

class ZeroStage3Optimizer {
public:
  ZeroStage3Optimizer(const std::vector<torch::Tensor> &parameters, torch::Device device,
                      ProcessGroupPtr ranks, const ZeroConfig &zeroConfig)
      : config(zeroConfig), computeDevice(device), group(std::move(ranks)) {
    const int64_t offloaded = std::lround(config.offloadOptimizer.ratio * parameters.size());
    for (int64_t i = 0; i < static_cast<int64_t>(parameters.size()); ++i) {
      const auto home = i < offloaded ? torch::Device(config.offloadOptimizer.device) : computeDevice;
      subGroups.push_back(makeSubGroup({parameters[i]}, home));
    }
  }

  torch::Tensor scale(const torch::Tensor &loss) const { return loss * config.lossScale; }

  void step() {
    torch::NoGradGuard noGrad;
    ++stepCount;
    for (auto &subGroup : subGroups)
      partitionGradient(subGroup);
    unscaleAndClipGrads(globalNorm());
    for (auto &subGroup : subGroups) {
      adamUpdate(subGroup);
      gatherParameters(subGroup);
    }
  }

private:
  SubGroup makeSubGroup(const std::vector<torch::Tensor> &parameters, torch::Device home) {
    torch::NoGradGuard noGrad;
    SubGroup subGroup;
    subGroup.parameters = parameters;
    auto flat = flatten(parameters);
    subGroup.partitionSize = flat.numel() / group->getSize();
    subGroup.master = partitionOf(flat, subGroup.partitionSize).to(home).clone();
    subGroup.grad = torch::zeros_like(subGroup.master);
    subGroup.momentum = torch::zeros_like(subGroup.master);
    subGroup.variance = torch::zeros_like(subGroup.master);
    return subGroup;
  }

  // One vector of all elements, padded to a multiple of the number of ranks.
  torch::Tensor flatten(const std::vector<torch::Tensor> &tensors) const {
    std::vector<torch::Tensor> pieces;
    for (const auto &tensor : tensors)
      pieces.push_back(tensor.reshape({-1}));
    auto flat = torch::cat(pieces);
    const int64_t ranks = group->getSize();
    const int64_t padding = (ranks - flat.numel() % ranks) % ranks;
    return torch::constant_pad_nd(flat, {0, padding});
  }

  torch::Tensor partitionOf(const torch::Tensor &flat, int64_t size) const {
    return flat.narrow(0, group->getRank() * size, size);
  }

  void partitionGradient(SubGroup &subGroup) {
    std::vector<torch::Tensor> gradients;
    for (auto &parameter : subGroup.parameters) {
      gradients.push_back(parameter.grad());
      parameter.mutable_grad() = torch::Tensor();
    }
    auto averaged = sumOverRanks(group, flatten(gradients)) / group->getSize();
    subGroup.grad.copy_(partitionOf(averaged, subGroup.partitionSize));
  }

  // The norm over all sub-groups of all ranks, still scaled.
  torch::Tensor globalNorm() const {
    std::vector<torch::Tensor> norms;
    for (const auto &subGroup : subGroups)
      norms.push_back(subGroup.grad.norm().to(computeDevice));
    auto squared = torch::stack(norms).square().sum();
    squared = sumOverRanks(group, squared).to(computeDevice);
    return squared.sqrt();
  }

  void unscaleAndClipGrads(const torch::Tensor &totalNorm) {
    auto combinedScale = torch::scalar_tensor(config.lossScale);
    if (config.clipGrad > 0) {
      auto clip = (totalNorm / config.lossScale + 1e-6) / config.clipGrad;
      if (clip.item<float>() > 1)
        combinedScale = clip * config.lossScale;
    }
    for (auto &subGroup : subGroups)
      subGroup.grad.mul_((1. / combinedScale).to(subGroup.grad.device()));
  }

  void adamUpdate(SubGroup &subGroup) {
    const double beta1 = 0.9, beta2 = 0.99;
    subGroup.momentum.mul_(beta1).add_(subGroup.grad, 1 - beta1);
    subGroup.variance.mul_(beta2).addcmul_(subGroup.grad, subGroup.grad, 1 - beta2);
    auto mean = subGroup.momentum / (1 - std::pow(beta1, stepCount));
    auto spread = (subGroup.variance / (1 - std::pow(beta2, stepCount))).sqrt() + 1e-8;
    subGroup.master.addcdiv_(mean, spread, -config.learningRate);
  }

  // Collects the updated partitions of all ranks and writes them into the model.
  void gatherParameters(SubGroup &subGroup) {
    std::vector<torch::Tensor> own = {subGroup.master.to(kWire)};
    std::vector<std::vector<torch::Tensor>> all(1);
    for (int rank = 0; rank < group->getSize(); ++rank)
      all[0].push_back(torch::empty_like(own[0]));
    group->allgather(all, own)->wait();
    auto flat = torch::cat(all[0]);
    int64_t offset = 0;
    for (auto &parameter : subGroup.parameters) {
      parameter.copy_(flat.narrow(0, offset, parameter.numel()).view_as(parameter));
      offset += parameter.numel();
    }
  }

  ZeroConfig config;
  torch::Device computeDevice;
  ProcessGroupPtr group;
  std::vector<SubGroup> subGroups;
  int64_t stepCount = 0;
};

// Image patches pass through the language model's blocks; the answer is read from their mean.
class MiniCpmVImpl : public torch::nn::Module {
public:
  MiniCpmVImpl(int64_t layers, int64_t width, int64_t answers) {
    patches = register_module("vpm", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, width, 8).stride(8)));
    resampler = register_module("resampler", torch::nn::Linear(width, width));
    for (int64_t i = 0; i < layers; ++i)
      blocks.push_back(register_module("llm" + std::to_string(i), DecoderBlock(width, 4)));
    head = register_module("head", torch::nn::Linear(width, answers));
  }

  torch::Tensor forward(const torch::Tensor &images) {
    auto hidden = patches->forward(images).flatten(2).transpose(1, 2);
    hidden = resampler->forward(hidden);
    for (auto &block : blocks)
      hidden = block->forward(hidden);
    return head->forward(hidden.mean(1));
  }

private:
  torch::nn::Conv2d patches{nullptr};
  torch::nn::Linear resampler{nullptr}, head{nullptr};
  std::vector<DecoderBlock> blocks;
};
TORCH_MODULE(MiniCpmV);

// "Which colour is this picture?": noise with one bright channel, and the channel's number.
torch::data::Example<> colourQuestions(int64_t batch) {
  auto images = torch::randn({batch, 3, 32, 32});
  auto answers = torch::randint(3, {batch}, torch::kLong);
  images += torch::one_hot(answers, 3).to(torch::kFloat).view({batch, 3, 1, 1});
  return {images, answers};
}

void train(const Arguments &arguments) {
  ZeroConfig config;
  config.clipGrad = arguments.real("--clip", config.clipGrad);
  config.offloadOptimizer.ratio = arguments.real("--offload-ratio", config.offloadOptimizer.ratio);
  const int64_t steps = arguments.number("--steps", 12);
  const int64_t batch = arguments.number("--batch", 16);

  const auto info = RankInfo::fromEnvironment();
  auto group = initProcessGroup(info);
  const auto device = deviceOfRank(info);

  torch::manual_seed(7);
  MiniCpmV model(arguments.number("--layers", 3), arguments.number("--width", 32), 3);
  model->to(device);
  broadcastParameters(group, *model);
  ZeroStage3Optimizer optimizer(model->parameters(), device, group, config);

  torch::manual_seed(100 + info.rank);
  for (int64_t step = 0; step < steps; ++step) {
    auto batchOfQuestions = colourQuestions(batch);
    auto logits = model->forward(batchOfQuestions.data.to(device));
    auto loss = torch::nn::functional::cross_entropy(logits, batchOfQuestions.target.to(device));
    optimizer.scale(loss).backward();
    optimizer.step();
    std::cout << "rank " << info.rank << " step " << step << " loss " << loss.item<float>() << std::endl;
  }
}

} // namespace

int main(int argc, char **argv) {
  if (!torch::cuda::is_available())
    return skipWithoutCuda("minicpm-zero3");
  try {
    train(Arguments(argc, argv));
  } catch (const std::exception &error) {
    std::cerr << "error: " << error.what() << std::endl;
    return 1;
  }
  return 0;
}
