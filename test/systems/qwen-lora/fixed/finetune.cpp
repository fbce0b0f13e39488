// Fine-tunes low-rank adapters (LoRA) of a Qwen-like model on one host, one rank per GPU. The
// configuration has no device map; each rank asks the loader for the whole model on its own GPU, which
// is the one map with which distributed training works.
//
//   finetune [--layers N] [--width N] [--vocabulary N] [--rank N] [--steps N] [--batch N]

#include "../../common/Decoder.h"
#include "../../common/Distributed.h"
#include "../../common/Program.h"

#include <nlohmann/json.hpp>
#include <torch/torch.h>

#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

using namespace systems;
using nlohmann::json;

namespace {

const char *const kTrainingConfig = R"({
  "model_args": {"layers": 4, "width": 48, "vocabulary": 96},
  "lora": {"r": 8, "alpha": 16.0},
  "learning_rate": 0.01
})";

// Module name to device number; the name "" stands for the whole model.
using DeviceMap = std::map<std::string, int>;

// A frozen linear layer plus a trainable low-rank correction.
class LoraLinearImpl : public torch::nn::Module {
public:
  LoraLinearImpl(int64_t in, int64_t out, int64_t rank, double alpha) : scaling(alpha / rank) {
    base = register_module("base_layer", torch::nn::Linear(in, out));
    for (auto &parameter : base->parameters())
      parameter.set_requires_grad(false);
    down = register_parameter("lora_A", torch::randn({rank, in}) / rank);
    up = register_parameter("lora_B", torch::zeros({out, rank}));
  }

  torch::Tensor forward(const torch::Tensor &input) {
    auto correction = torch::matmul(torch::matmul(input, down.t()), up.t());
    return base->forward(input) + correction * scaling;
  }

private:
  double scaling;
  torch::nn::Linear base{nullptr};
  torch::Tensor down, up;
};
TORCH_MODULE(LoraLinear);

struct QwenArguments {
  int64_t layers, width, vocabulary, rank;
  double alpha;
};

// Causal averaging instead of full attention: the adapters are what this program is about.
class LoraBlockImpl : public torch::nn::Module {
public:
  explicit LoraBlockImpl(const QwenArguments &args) {
    mixer = register_module("c_attn", LoraLinear(args.width, args.width, args.rank, args.alpha));
    inner = register_module("w1", LoraLinear(args.width, 2 * args.width, args.rank, args.alpha));
    outer = register_module("c_proj", LoraLinear(2 * args.width, args.width, args.rank, args.alpha));
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
    tokens = register_module("wte", torch::nn::Embedding(args.vocabulary, args.width));
    tokens->weight.set_requires_grad(false);
    for (int64_t i = 0; i < args.layers; ++i)
      blocks.push_back(register_module("h" + std::to_string(i), LoraBlock(args)));
    head = register_module("lm_head", LoraLinear(args.width, args.vocabulary, args.rank, args.alpha));
  }

  void dispatch(const DeviceMap &map) {
    for (auto &child : named_children()) {
      const auto entry = map.count(child.key()) ? map.find(child.key()) : map.find("");
      if (entry == map.end())
        throw std::invalid_argument("device_map has no entry for " + child.key());
      child.value()->to(torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(entry->second)));
    }
  }

  torch::Tensor forward(const torch::Tensor &ids) {
    auto hidden = tokens->forward(ids.to(deviceOf(*tokens)));
    for (auto &block : blocks)
      hidden = block->forward(hidden.to(deviceOf(*block)));
    return head->forward(hidden.to(deviceOf(*head))).to(ids.device());
  }

private:
  static torch::Device deviceOf(const torch::nn::Module &module) {
    return module.parameters().front().device();
  }

  torch::nn::Embedding tokens{nullptr};
  std::vector<LoraBlock> blocks;
  LoraLinear head{nullptr};
};
TORCH_MODULE(QwenLora);

// Turns the device_map argument into entries: null is no map, a word spreads the layers evenly.
DeviceMap resolveDeviceMap(const json &spec, int64_t layers) {
  if (spec.is_null())
    return {};
  if (spec.is_object())
    return spec.get<DeviceMap>();
  const int64_t visible = torch::cuda::device_count();
  DeviceMap map = {{"wte", 0}, {"lm_head", static_cast<int>(visible - 1)}};
  for (int64_t i = 0; i < layers; ++i)
    map["h" + std::to_string(i)] = static_cast<int>(i * visible / layers);
  return map;
}

QwenLora loadPretrained(const json &modelArgs, const json &lora) {
  const QwenArguments args = {modelArgs.at("layers"), modelArgs.at("width"), modelArgs.at("vocabulary"),
                              lora.at("r"), lora.at("alpha")};
  const auto map = resolveDeviceMap(modelArgs.value("device_map", json()), args.layers);
  if (map.size() > 1 && isDistributed())
    throw std::invalid_argument("You can't train a model that has been loaded with `device_map='auto'` in "
                                "any distributed mode. Place the whole model on the rank's device instead.");
  torch::manual_seed(7);
  QwenLora model(args);
  if (!map.empty())
    model->dispatch(map);
  return model;
}

std::vector<torch::Tensor> trainableParameters(const QwenLora &model) {
  std::vector<torch::Tensor> trainable;
  for (auto &parameter : model->parameters())
    if (parameter.requires_grad())
      trainable.push_back(parameter);
  return trainable;
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

  const auto info = RankInfo::fromEnvironment();
  auto group = initProcessGroup(info);
  const auto device = deviceOfRank(info);

  modelArgs["device_map"] = {{"", info.localRank}};
  auto model = loadPretrained(modelArgs, config["lora"]);
  broadcastParameters(group, *model);

  torch::manual_seed(100 + info.rank);
  const torch::optim::AdamWOptions options(config["learning_rate"].get<double>());
  torch::optim::AdamW optimizer(trainableParameters(model), options);
  for (int64_t step = 0; step < steps; ++step) {
    auto ids = countingTokens(batch, 16, modelArgs["vocabulary"]).to(device);
    auto logits = model->forward(ids).slice(1, 0, -1);
    auto loss = torch::nn::functional::cross_entropy(logits.flatten(0, 1), ids.slice(1, 1).flatten());
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
    return skipWithoutCuda("qwen-lora");
  try {
    train(Arguments(argc, argv));
  } catch (const std::exception &error) {
    std::cerr << "error: " << error.what() << std::endl;
    return 1;
  }
  return 0;
}
