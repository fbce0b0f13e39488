// The fixed program on device_shim: dispatch_model() spreads the stages over all visible GPUs by their size
// and moves what passes between them; the labels go to the device of the logits.
//
//   finetune [--layers N] [--width N] [--vocabulary N] [--steps N] [--batch N]

#include "../../common/Decoder.h"
#include "../../common/DeviceList.h"
#include "../../common/Program.h"

#include <device_shim/CheckSameDevice.h>
#include <device_shim/DispatchModel.h>
#include <device_shim/Stage.h>
#include <torch/torch.h>

#include <iostream>
#include <string>
#include <vector>

using namespace systems;
using device_shim::Stage;

namespace {

struct GlmConfig {
  int64_t layers = 8;
  int64_t width = 64;
  int64_t heads = 4;
  int64_t vocabulary = 128;
};

class GlmForCausalLmImpl : public torch::nn::Module {
public:
  explicit GlmForCausalLmImpl(const GlmConfig &config) {
    embedding = register_module("embedding", Stage<torch::nn::Embedding>(config.vocabulary, config.width));
    for (int64_t i = 0; i < config.layers; ++i)
      layers.push_back(
          register_module("layer" + std::to_string(i), Stage<DecoderBlock>(config.width, config.heads)));
    finalNorm = register_module("final_layernorm", Stage<RmsNorm>(config.width));
    outputLayer = register_module("output_layer", Stage<torch::nn::Linear>(config.width, config.vocabulary));
  }

  torch::Tensor forward(const torch::Tensor &inputIds) {
    auto hidden = embedding->forward(inputIds);
    for (auto &layer : layers)
      hidden = layer->forward(hidden);
    return outputLayer->forward(finalNorm->forward(hidden));
  }

private:
  Stage<torch::nn::Embedding> embedding{nullptr};
  std::vector<Stage<DecoderBlock>> layers;
  Stage<RmsNorm> finalNorm{nullptr};
  Stage<torch::nn::Linear> outputLayer{nullptr};
};
TORCH_MODULE(GlmForCausalLm);

// Token n predicts token n + 1.
torch::Tensor shiftedLoss(const torch::Tensor &logits, const torch::Tensor &labels) {
  auto shiftLogits = logits.slice(/*dim=*/1, 0, -1).flatten(0, 1);
  // The logits are the larger of the two: the labels travel.
  auto shiftLabels = labels.slice(/*dim=*/1, 1).flatten().to(logits.device());
  device_shim::check_same_device("the loss", {{"logits", shiftLogits}, {"labels", shiftLabels}});
  torch::nn::CrossEntropyLoss criterion(torch::nn::CrossEntropyLossOptions().ignore_index(-100));
  return criterion->forward(shiftLogits, shiftLabels);
}

// The prompt, the first four tokens, does not count towards the loss.
torch::Tensor labelsFor(const torch::Tensor &inputIds) {
  auto labels = inputIds.clone();
  labels.slice(1, 0, 4).fill_(-100);
  return labels;
}

void train(const Arguments &arguments) {
  GlmConfig config;
  config.layers = arguments.number("--layers", config.layers);
  config.width = arguments.number("--width", config.width);
  config.vocabulary = arguments.number("--vocabulary", config.vocabulary);
  const int64_t steps = arguments.number("--steps", 12);
  const int64_t batch = arguments.number("--batch", 8);

  torch::manual_seed(7);
  GlmForCausalLm net(config);
  device_shim::DispatchOptions options;
#ifdef SYSTEMS_DEVICE_LIST
  options.devices = listedDevices();
#endif
  auto model = device_shim::dispatch_model(net, "auto", options);
  torch::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions(5e-3));
  for (int64_t step = 0; step < steps; ++step) {
    auto inputIds = countingTokens(batch, 24, config.vocabulary);
    auto loss = shiftedLoss(model.forward(inputIds), labelsFor(inputIds));
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    std::cout << "step " << step << " loss " << loss.item<float>() << std::endl;
  }
}

} // namespace

int main(int argc, char **argv) {
  if (!torch::cuda::is_available())
    return skipWithoutCuda("glm4-loss");
  try {
    train(Arguments(argc, argv));
  } catch (const std::exception &error) {
    std::cerr << "error: " << error.what() << std::endl;
    return 1;
  }
  return 0;
}
