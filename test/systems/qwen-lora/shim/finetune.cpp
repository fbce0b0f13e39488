// The fixed program on device_shim: LoRA adapters, one rank per GPU, and a map with the rank's own device as
// its only entry, which is the one device map with which distributed training works. It also runs on the CPU.
//
//   finetune [--layers N] [--width N] [--vocabulary N] [--rank N] [--steps N] [--batch N]

#include "../../common/Decoder.h"
#include "../../common/Program.h"

#include <device_shim/DispatchModel.h>
#include <device_shim/Distributed.h>
#include <device_shim/DistributedDataParallel.h>
#include <device_shim/Lora.h>
#include <device_shim/Stage.h>
#include <nlohmann/json.hpp>
#include <torch/torch.h>

#include <iostream>
#include <string>
#include <vector>

using namespace systems;
using device_shim::LoraLinear;
using device_shim::LoraOptions;
using device_shim::Stage;
using nlohmann::json;

namespace {

const char *const kTrainingConfig = R"({
  "model_args": {"layers": 4, "width": 48, "vocabulary": 96},
  "lora": {"r": 8, "alpha": 16.0},
  "learning_rate": 0.01
})";

struct QwenArguments {
  int64_t layers, width, vocabulary;
  LoraOptions lora;
};

// Causal averaging instead of full attention: the adapters are what this program is about.
class LoraBlockImpl : public torch::nn::Module {
public:
  explicit LoraBlockImpl(const QwenArguments &args) {
    mixer = register_module("c_attn", LoraLinear(args.width, args.width, args.lora));
    inner = register_module("w1", LoraLinear(args.width, 2 * args.width, args.lora));
    outer = register_module("c_proj", LoraLinear(2 * args.width, args.width, args.lora));
    norm = register_module("ln", RmsNorm(args.width));
    for (auto &parameter : norm->parameters())
      parameter.set_requires_grad(false);
  }

  torch::Tensor forward(torch::Tensor hidden) {
    auto counts = torch::arange(1, hidden.size(1) + 1, hidden.options()).view({1, -1, 1});
    hidden = hidden + mixer->forward(norm->forward(hidden).cumsum(1) / counts);
    return hidden + outer->forward(torch::silu(inner->forward(norm->forward(hidden))));
  }

private:
  LoraLinear mixer{nullptr}, inner{nullptr}, outer{nullptr};
  RmsNorm norm{nullptr};
};
TORCH_MODULE(LoraBlock);

class QwenLoraImpl : public torch::nn::Module {
public:
  explicit QwenLoraImpl(const QwenArguments &args) {
    tokens = register_module("wte", Stage<torch::nn::Embedding>(args.vocabulary, args.width));
    for (int64_t i = 0; i < args.layers; ++i)
      blocks.push_back(register_module("h" + std::to_string(i), Stage<LoraBlock>(args)));
    head = register_module("lm_head", Stage<LoraLinear>(args.width, args.vocabulary, args.lora));
    device_shim::train_only_adapters(*this);
  }

  torch::Tensor forward(const torch::Tensor &ids) {
    auto hidden = tokens->forward(ids);
    for (auto &block : blocks)
      hidden = block->forward(hidden);
    return head->forward(hidden);
  }

private:
  Stage<torch::nn::Embedding> tokens{nullptr};
  std::vector<Stage<LoraBlock>> blocks;
  Stage<LoraLinear> head{nullptr};
};
TORCH_MODULE(QwenLora);

QwenArguments readArguments(const json &config) {
  QwenArguments args;
  const auto &model = config.at("model_args");
  args.layers = model.at("layers");
  args.width = model.at("width");
  args.vocabulary = model.at("vocabulary");
  args.lora.rank = config.at("lora").at("r");
  args.lora.alpha = config.at("lora").at("alpha");
  return args;
}

void train(const Arguments &arguments) {
  auto config = json::parse(kTrainingConfig);
  auto &modelArgs = config["model_args"];
  modelArgs["layers"] = arguments.number("--layers", modelArgs["layers"]);
  modelArgs["width"] = arguments.number("--width", modelArgs["width"]);
  modelArgs["vocabulary"] = arguments.number("--vocabulary", modelArgs["vocabulary"]);
  config["lora"]["r"] = arguments.number("--rank", config["lora"]["r"]);
  const int64_t steps = arguments.number("--steps", 20);
  const int64_t batch = arguments.number("--batch", 16);

  auto ranks = device_shim::init_distributed();
  const auto device = ranks->device();

  torch::manual_seed(7);
  QwenLora net(readArguments(config));
  auto placed = device_shim::dispatch_model(net, device_shim::DeviceMap({{"", device}}));
  device_shim::DistributedDataParallel<QwenLora> model(net, ranks);

  torch::manual_seed(100 + ranks->rank());
  const torch::optim::AdamWOptions options(config["learning_rate"].get<double>());
  torch::optim::AdamW optimizer(device_shim::trainable_parameters(*net), options);
  for (int64_t step = 0; step < steps; ++step) {
    auto ids = countingTokens(batch, 16, modelArgs["vocabulary"]).to(device);
    auto logits = model.forward(ids).slice(1, 0, -1);
    auto loss = torch::nn::functional::cross_entropy(logits.flatten(0, 1), ids.slice(1, 1).flatten());
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    std::cout << "rank " << ranks->rank() << " step " << step << " loss " << loss.item<float>() << std::endl;
  }
}

} // namespace

int main(int argc, char **argv) {
  try {
    train(Arguments(argc, argv));
  } catch (const std::exception &error) {
    std::cerr << "error: " << error.what() << std::endl;
    return 1;
  }
  return 0;
}
