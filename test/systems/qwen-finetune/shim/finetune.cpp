// The fixed program on device_shim: every rank holds the whole model on its own device, and
// DistributedDataParallel averages the gradients while backward() runs. It also runs on the CPU.
//
//   finetune [--small] [--layers N] [--width N] [--vocabulary N] [--steps N] [--batch N]

#include "../../common/Decoder.h"
#include "../../common/Program.h"

#include <device_shim/Distributed.h>
#include <device_shim/DistributedDataParallel.h>
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

QwenModel loadPretrained(const QwenConfig &config, torch::Device device) {
  torch::manual_seed(7);
  QwenModel model(config);
  model->to(device);
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

  auto ranks = device_shim::init_distributed();
  const auto device = ranks->device();
  auto net = loadPretrained(config, device);
  device_shim::DistributedDataParallel<QwenModel> model(net, ranks);

  torch::manual_seed(100 + ranks->rank());
  torch::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions(5e-3));
  for (int64_t step = 0; step < steps; ++step) {
    auto ids = countingTokens(batch, 24, config.vocabulary).to(device);
    auto loss = nextTokenLoss(model.forward(ids), ids);
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
