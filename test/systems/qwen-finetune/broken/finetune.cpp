// Fine-tunes a Qwen-like causal language model, data-parallel over the ranks torchrun starts.
// The model is loaded with device_map="auto", which spreads the layers of a model that does not fit on
// one GPU over *all* visible GPUs, in every rank, while each rank keeps its batches on its own GPU.
//
//   finetune [--small] [--layers N] [--width N] [--vocabulary N] [--steps N] [--batch N]

#include "../../common/Decoder.h"
#include "../../common/DeviceList.h"
#include "../../common/Distributed.h"
#include "../../common/Program.h"

#include <torch/torch.h>

#include <iostream>
#include <string>
#include <vector>

using namespace systems;

namespace {

struct QwenConfig {
  int64_t layers = 8;
  int64_t width = 64;
  int64_t heads = 4;
  int64_t vocabulary = 128;

  static QwenConfig qwen7B() { return {}; }

  static QwenConfig qwen1B8() {
    QwenConfig config;
    config.layers = 4;
    config.width = 32;
    return config;
  }

  int64_t parameterBytes() const {
    const int64_t perLayer = 10 * width * width;
    return (layers * perLayer + 2 * vocabulary * width) * static_cast<int64_t>(sizeof(float));
  }
};

struct LoadOptions {
  std::string device_map;
  torch::Device device = torch::kCPU;
  int64_t bytesPerDevice = 1 << 20;
};

torch::Device cudaDevice(int64_t index) {
  return torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(index));
}

// The device of every layer. A map leaves a model that fits on one device whole and fills the visible
// devices front to back with a larger one.
std::vector<torch::Device> placeLayers(const QwenConfig &config, const LoadOptions &options) {
  const bool fits = config.parameterBytes() <= options.bytesPerDevice;
  if (options.device_map.empty() || fits)
    return std::vector<torch::Device>(config.layers, options.device);
  const int64_t visible = torch::cuda::device_count();
  std::vector<torch::Device> devices;
  for (int64_t i = 0; i < config.layers; ++i)
    devices.push_back(cudaDevice(i * visible / config.layers));
#ifdef SYSTEMS_DEVICE_LIST
  useListedDevices(devices);
#endif
  return devices;
}

class QwenModelImpl : public torch::nn::Module {
public:
  QwenModelImpl(const QwenConfig &config, std::vector<torch::Device> layerDevices)
      : devices(std::move(layerDevices)) {
    tokens = register_module("wte", torch::nn::Embedding(config.vocabulary, config.width));
    tokens->to(devices.front());
    for (int64_t i = 0; i < config.layers; ++i) {
      auto block = DecoderBlock(config.width, config.heads);
      block->to(devices[i]);
      blocks.push_back(register_module("h" + std::to_string(i), block));
    }
    norm = register_module("ln_f", RmsNorm(config.width));
    head = register_module("lm_head", torch::nn::Linear(config.width, config.vocabulary));
    norm->to(devices.back());
    head->to(devices.back());
  }

  torch::Tensor forward(const torch::Tensor &ids) {
    auto hidden = tokens->forward(ids); // [[device-mixed-op]]
    for (size_t i = 0; i < blocks.size(); ++i)
      hidden = blocks[i]->forward(hidden.to(devices[i]));
    auto logits = head->forward(norm->forward(hidden));
    // The caller gets the result where its input was.
    return logits.to(ids.device());
  }

private:
  std::vector<torch::Device> devices;
  torch::nn::Embedding tokens{nullptr};
  std::vector<DecoderBlock> blocks;
  RmsNorm norm{nullptr};
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(QwenModel);

QwenModel loadPretrained(const QwenConfig &config, const LoadOptions &options) {
  torch::manual_seed(7);
  return QwenModel(config, placeLayers(config, options));
}

torch::Tensor nextTokenLoss(const torch::Tensor &logits, const torch::Tensor &ids) {
  auto predicted = logits.slice(1, 0, -1).reshape({-1, logits.size(-1)});
  auto expected = ids.slice(1, 1).reshape({-1});
  return torch::nn::functional::cross_entropy(predicted, expected);
}

void train(const Arguments &arguments) {
  auto config = arguments.flag("--small") ? QwenConfig::qwen1B8() : QwenConfig::qwen7B();
  config.layers = arguments.number("--layers", config.layers);
  config.width = arguments.number("--width", config.width);
  config.vocabulary = arguments.number("--vocabulary", config.vocabulary);
  const int64_t steps = arguments.number("--steps", 12);
  const int64_t batch = arguments.number("--batch", 8);

  const auto info = RankInfo::fromEnvironment();
  auto group = initProcessGroup(info);
  const auto device = deviceOfRank(info);

  LoadOptions options;
  options.device_map = "auto";
  options.device = device;
  auto model = loadPretrained(config, options); // [[device-map-distributed]]
  broadcastParameters(group, *model);

  torch::manual_seed(100 + info.rank);
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(5e-3));
  for (int64_t step = 0; step < steps; ++step) {
    auto ids = countingTokens(batch, 24, config.vocabulary).to(device);
    auto loss = nextTokenLoss(model->forward(ids), ids);
    optimizer.zero_grad();
    loss.backward();
    averageGradients(group, *model);
    optimizer.step();
    std::cout << "rank " << info.rank << " step " << step << " loss " << loss.item<float>() << std::endl;
  }
}

} // namespace

int main(int argc, char **argv) {
  if (!torch::cuda::is_available())
    return skipWithoutCuda("qwen-finetune");
  try {
    train(Arguments(argc, argv));
  } catch (const std::exception &error) {
    std::cerr << "error: " << error.what() << std::endl;
    return 1;
  }
  return 0;
}
