// The fixed program on device_shim: ZeRO stage 3, half of the optimizer's partitions offloaded to host
// memory, loss scaling and clipping. Each partition is scaled where it is, by a number. It also runs on the
// CPU.
//
//   finetune [--layers N] [--width N] [--steps N] [--batch N] [--clip NORM] [--offload-ratio R]

#include "../../common/Decoder.h"
#include "../../common/Program.h"

#include <device_shim/Distributed.h>
#include <device_shim/ShardedDataParallel.h>
#include <device_shim/Stage.h>
#include <torch/torch.h>

#include <iostream>
#include <string>
#include <vector>

using namespace systems;
using device_shim::Stage;

namespace {

// Image patches pass through the language model's blocks; the answer is read from their mean.
class MiniCpmVImpl : public torch::nn::Module {
public:
  MiniCpmVImpl(int64_t layers, int64_t width, int64_t answers) {
    const auto patchOptions = torch::nn::Conv2dOptions(3, width, 8).stride(8);
    patches = register_module("vpm", Stage<torch::nn::Conv2d>(patchOptions));
    resampler = register_module("resampler", Stage<torch::nn::Linear>(width, width));
    for (int64_t i = 0; i < layers; ++i)
      blocks.push_back(register_module("llm" + std::to_string(i), Stage<DecoderBlock>(width, 4)));
    head = register_module("head", Stage<torch::nn::Linear>(width, answers));
  }

  torch::Tensor forward(const torch::Tensor &images) {
    auto hidden = patches->forward(images).flatten(2).transpose(1, 2);
    hidden = resampler->forward(hidden);
    for (auto &block : blocks)
      hidden = block->forward(hidden);
    return head->forward(hidden.mean(1));
  }

private:
  Stage<torch::nn::Conv2d> patches{nullptr};
  Stage<torch::nn::Linear> resampler{nullptr}, head{nullptr};
  std::vector<Stage<DecoderBlock>> blocks;
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
  device_shim::ShardedOptions options;
  options.offload_optimizer = true;
  options.offload_ratio = arguments.real("--offload-ratio", 0.5);
  const double clip = arguments.real("--clip", 1.0);
  const int64_t steps = arguments.number("--steps", 12);
  const int64_t batch = arguments.number("--batch", 16);

  auto ranks = device_shim::init_distributed();
  const auto device = ranks->device();

  torch::manual_seed(7);
  MiniCpmV net(arguments.number("--layers", 3), arguments.number("--width", 32), 3);
  device_shim::ShardedDataParallel<MiniCpmV> model(net, ranks, options);
  torch::optim::Adam optimizer(model.optimizer_parameters(), torch::optim::AdamOptions(1e-3));
  device_shim::GradScalerOptions scaling;
  scaling.initial_scale = 1024;
  device_shim::GradScaler scaler(scaling);

  torch::manual_seed(100 + ranks->rank());
  for (int64_t step = 0; step < steps; ++step) {
    auto batchOfQuestions = colourQuestions(batch);
    auto logits = model.forward(batchOfQuestions.data.to(device));
    auto loss = torch::nn::functional::cross_entropy(logits, batchOfQuestions.target.to(device));
    optimizer.zero_grad();
    scaler.scale(loss).backward();
    const double norm = model.unscale_and_clip_grads(clip, &scaler);
    scaler.step(optimizer);
    scaler.update();
    std::cout << "rank " << ranks->rank() << " step " << step << " norm " << norm << " loss "
              << loss.item<float>() << std::endl;
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
