// Fine-tunes a Qwen-like causal language model, data-parallel over the ranks torchrun starts.
// There is no device map: every rank holds the whole model on its own GPU and the gradients are
// averaged over the ranks.
//
//   finetune [--small] [--layers N] [--width N] [--vocabulary N] [--steps N] [--batch N]

#include "../../common/Decoder.h"
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
};

struct LoadOptions {
  torch::Device device = torch::kCPU;
};

class QwenModelImpl : public torch::nn::Module {
public:
  explicit QwenModelImpl(const QwenConfig &config) {
    tokens = register_module("wte", torch::nn::Embedding(config.vocabulary, config.width));
    for (int64_t i = 0; i < config.layers; ++i)
      blocks.push_back(register_module("h" + std::to_string(i), DecoderBlock(config.width, config.heads)));
    norm = register_module("ln_f", RmsNorm(config.width));
    head = register_module("lm_head", torch::nn::Linear(config.width, config.vocabulary));
  }

  torch::Tensor forward(const torch::Tensor &ids) {
    auto hidden = tokens->forward(ids);
    for (auto &block : blocks)
      hidden = block->forward(hidden);
    return head->forward(norm->forward(hidden));
  }

private:
  torch::nn::Embedding tokens{nullptr};
  std::vector<DecoderBlock> blocks;
  RmsNorm norm{nullptr};
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(QwenModel);

QwenModel loadPretrained(const QwenConfig &config, const LoadOptions &options) {
  torch::manual_seed(7);
  QwenModel model(config);
  model->to(options.device);
  return model;
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
  options.device = device;
  auto model = loadPretrained(config, options);
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
