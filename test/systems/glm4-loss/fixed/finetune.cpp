// Fine-tunes a GLM-4-like model whose layers are spread over all visible GPUs by one process. The
// tokens enter on the first GPU and the logits leave on the last one; the loss is computed in the
// model, as the reference implementation does when it is given labels.
//
//   finetune [--layers N] [--width N] [--vocabulary N] [--steps N] [--batch N]

#include "../../common/Decoder.h"
#include "../../common/DeviceList.h"
#include "../../common/Program.h"

#include <torch/torch.h>

#include <iostream>
#include <string>
#include <utility>
#include <vector>

using namespace systems;

namespace {

struct GlmConfig {
  int64_t layers = 8;
  int64_t width = 64;
  int64_t heads = 4;
  int64_t vocabulary = 128;
};

struct CausalLmOutput {
  torch::Tensor logits;
  torch::Tensor loss;
};

std::vector<torch::Device> visibleDevices() {
  std::vector<torch::Device> devices;
  for (size_t i = 0; i < torch::cuda::device_count(); ++i)
    devices.push_back(torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(i)));
#ifdef SYSTEMS_DEVICE_LIST
  useListedDevices(devices);
#endif
  return devices;
}

class GlmForCausalLmImpl : public torch::nn::Module {
public:
  GlmForCausalLmImpl(const GlmConfig &config, std::vector<torch::Device> pipeline)
      : devices(std::move(pipeline)) {
    embedding = register_module("embedding", torch::nn::Embedding(config.vocabulary, config.width));
    embedding->to(devices.front());
    const int64_t stages = static_cast<int64_t>(devices.size());
    for (int64_t i = 0; i < config.layers; ++i) {
      const auto device = devices[i * stages / config.layers];
      auto layer = DecoderBlock(config.width, config.heads);
      layer->to(device);
      layers.push_back(register_module("layer" + std::to_string(i), layer));
      layerDevices.push_back(device);
    }
    finalNorm = register_module("final_layernorm", RmsNorm(config.width));
    outputLayer = register_module("output_layer", torch::nn::Linear(config.width, config.vocabulary));
    finalNorm->to(devices.back());
    outputLayer->to(devices.back());
  }

  CausalLmOutput forward(const torch::Tensor &inputIds, const torch::Tensor &labels) {
    auto hidden = embedding->forward(inputIds);
    for (size_t i = 0; i < layers.size(); ++i)
      hidden = layers[i]->forward(hidden.to(layerDevices[i]));
    hidden = finalNorm->forward(hidden.to(devices.back()));
    auto logits = outputLayer->forward(hidden);
    return {logits, labels.defined() ? shiftedLoss(logits, labels) : torch::Tensor()};
  }

private:
  // Token n predicts token n + 1.
  torch::Tensor shiftedLoss(const torch::Tensor &logits, const torch::Tensor &labels) {
    auto shiftLogits = logits.slice(/*dim=*/1, 0, -1).contiguous();
    auto shiftLabels = labels.slice(/*dim=*/1, 1).contiguous();
    torch::nn::CrossEntropyLoss criterion(torch::nn::CrossEntropyLossOptions().ignore_index(-100));
    shiftLogits = shiftLogits.view({-1, shiftLogits.size(-1)});
    shiftLabels = shiftLabels.view({-1});
    // The logits are the larger of the two: the labels travel.
    shiftLabels = shiftLabels.to(shiftLogits.device());
    return criterion->forward(shiftLogits, shiftLabels);
  }

  std::vector<torch::Device> devices;
  std::vector<torch::Device> layerDevices;
  torch::nn::Embedding embedding{nullptr};
  std::vector<DecoderBlock> layers;
  RmsNorm finalNorm{nullptr};
  torch::nn::Linear outputLayer{nullptr};
};
TORCH_MODULE(GlmForCausalLm);

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
  const auto devices = visibleDevices();
  GlmForCausalLm model(config, devices);
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(5e-3));
  for (int64_t step = 0; step < steps; ++step) {
    auto inputIds = countingTokens(batch, 24, config.vocabulary).to(devices.front());
    auto output = model->forward(inputIds, labelsFor(inputIds));
    optimizer.zero_grad();
    output.loss.backward();
    optimizer.step();
    std::cout << "step " << step << " loss " << output.loss.item<float>() << std::endl;
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
