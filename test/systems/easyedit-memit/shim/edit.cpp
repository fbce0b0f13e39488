// The fixed program on device_shim: dispatch_model() spreads the layers over all visible GPUs; the hook moves
// `delta` to the device of the output that it changes.
//
//   edit [--layers N] [--edit-layer N] [--width N] [--vocabulary N] [--steps N]

#include "../../common/Decoder.h"
#include "../../common/DeviceList.h"
#include "../../common/Program.h"

#include <device_shim/DispatchModel.h>
#include <device_shim/Stage.h>
#include <torch/torch.h>

#include <functional>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

using namespace systems;
using device_shim::Stage;

namespace {

struct MemitHyperParameters {
  int64_t layer = 8;
  // The GPU on which computeZ() allocates.
  int device = 0;
  int64_t gradientSteps = 20;
  double learningRate = 0.5;
  double weightDecay = 1e-3;
  double clampNormFactor = 4;
};

struct EditRequest {
  torch::Tensor inputIds;
  // Per row, the position of the subject's last token.
  std::vector<int64_t> lookup;
  torch::Tensor target;
};

using OutputHook = std::function<torch::Tensor(torch::Tensor curOut)>;

// A decoder block whose output a hook may replace and whose down projection's input is kept.
class TracedBlockImpl : public torch::nn::Module {
public:
  TracedBlockImpl(int64_t width, int64_t heads) {
    block = register_module("block", DecoderBlock(width, heads));
  }

  torch::Tensor forward(torch::Tensor hidden) {
    hidden = hidden + block->attention->forward(block->attentionNorm->forward(hidden));
    keys = block->feedForward->innerState(block->feedForwardNorm->forward(hidden));
    auto output = hidden + block->feedForward->down->forward(keys);
    return hook ? hook(output) : output;
  }

  void registerForwardHook(OutputHook newHook) { hook = std::move(newHook); }
  void removeForwardHook() { hook = nullptr; }

  DecoderBlock block{nullptr};
  torch::Tensor keys;

private:
  OutputHook hook;
};
TORCH_MODULE(TracedBlock);

class LlamaModelImpl : public torch::nn::Module {
public:
  LlamaModelImpl(int64_t layerCount, int64_t width, int64_t vocabulary) {
    tokens = register_module("embed_tokens", Stage<torch::nn::Embedding>(vocabulary, width));
    for (int64_t i = 0; i < layerCount; ++i)
      layers.push_back(register_module("layer" + std::to_string(i), Stage<TracedBlock>(width, 4)));
    norm = register_module("norm", Stage<RmsNorm>(width));
    head = register_module("lm_head", Stage<torch::nn::Linear>(width, vocabulary));
    for (auto &parameter : parameters())
      parameter.set_requires_grad(false);
  }

  torch::Tensor forward(const torch::Tensor &inputIds) {
    auto hidden = tokens->forward(inputIds);
    for (auto &layer : layers)
      hidden = layer->forward(hidden);
    return head->forward(norm->forward(hidden));
  }

  std::vector<Stage<TracedBlock>> layers;

private:
  Stage<torch::nn::Embedding> tokens{nullptr};
  Stage<RmsNorm> norm{nullptr};
  Stage<torch::nn::Linear> head{nullptr};
};
TORCH_MODULE(LlamaModel);

// How unlikely the wanted answers are after the last token.
torch::Tensor answerLoss(LlamaModel &model, const EditRequest &request) {
  auto logits = model->forward(request.inputIds).select(1, -1);
  return torch::nn::functional::cross_entropy(logits, request.target.to(logits.device()));
}

void clampNorm(torch::Tensor &delta, double limit) {
  torch::NoGradGuard noGrad;
  const double norm = delta.norm().item<double>();
  if (norm > limit)
    delta.mul_(limit / norm);
}

// The change of the edited layer's output that makes the model give the wanted answer.
torch::Tensor computeZ(LlamaModel &model, const EditRequest &request, int64_t width,
                       const MemitHyperParameters &hparams) {
  const torch::Device device(torch::kCUDA, static_cast<c10::DeviceIndex>(hparams.device));
  auto delta = torch::zeros({width}, torch::TensorOptions().device(device).requires_grad(true));
  double initialNorm = 0;

  OutputHook editOutputFn = [&](torch::Tensor curOut) {
    if (initialNorm == 0)
      initialNorm = curOut[0][request.lookup[0]].norm().item<double>();
    for (int64_t i = 0; i < curOut.size(0); ++i)
      curOut.index({i, request.lookup[i]}) += delta.to(curOut.device());
    return curOut;
  };

  auto &edited = model->layers.at(hparams.layer)->module;
  edited->registerForwardHook(editOutputFn);
  torch::optim::Adam optimizer({delta}, torch::optim::AdamOptions(hparams.learningRate));
  for (int64_t step = 0; step < hparams.gradientSteps; ++step) {
    optimizer.zero_grad();
    auto likelihood = answerLoss(model, request);
    auto decay = delta.square().sum() * hparams.weightDecay / (initialNorm * initialNorm);
    auto loss = likelihood + decay.to(likelihood.device());
    loss.backward();
    optimizer.step();
    clampNorm(delta, hparams.clampNormFactor * initialNorm);
    std::cout << "step " << step << " loss " << loss.item<float>() << std::endl;
  }
  edited->removeForwardHook();
  return delta.detach();
}

// A rank-one update: the down projection maps the subject's mean key to its old value plus the change.
void insertIntoWeights(LlamaModel &model, const EditRequest &request, const torch::Tensor &change,
                       const MemitHyperParameters &hparams) {
  torch::NoGradGuard noGrad;
  auto &edited = model->layers.at(hparams.layer)->module;
  model->forward(request.inputIds);
  std::vector<torch::Tensor> subjectKeys;
  for (int64_t i = 0; i < edited->keys.size(0); ++i)
    subjectKeys.push_back(edited->keys[i][request.lookup[i]]);
  auto key = torch::stack(subjectKeys).mean(0);
  auto &weight = edited->block->feedForward->down->weight;
  weight += torch::outer(change.to(weight.device()), key) / key.dot(key);
}

void edit(const Arguments &arguments) {
  const int64_t width = arguments.number("--width", 32);
  const int64_t vocabulary = arguments.number("--vocabulary", 64);
  MemitHyperParameters hparams;
  hparams.layer = arguments.number("--edit-layer", hparams.layer, /*minimum=*/0);
  hparams.gradientSteps = arguments.number("--steps", hparams.gradientSteps);

  torch::manual_seed(7);
  LlamaModel model(arguments.number("--layers", 32), width, vocabulary);
  device_shim::DispatchOptions options;
#ifdef SYSTEMS_DEVICE_LIST
  options.devices = listedDevices();
#endif
  auto dispatched = device_shim::dispatch_model(model, "auto", options);

  // The same subject at the end of three prompts; the new answer is token 5.
  EditRequest request;
  request.inputIds = torch::randint(vocabulary, {3, 10}, torch::kLong);
  request.inputIds.slice(1, 8).fill_(3);
  request.lookup = {9, 9, 9};
  request.target = torch::full({3}, 5, torch::kLong);

  std::cout << "before the edit: loss " << answerLoss(model, request).item<float>() << std::endl;
  auto change = computeZ(model, request, width, hparams);
  insertIntoWeights(model, request, change, hparams);
  std::cout << "after the edit: loss " << answerLoss(model, request).item<float>() << std::endl;
}

} // namespace

int main(int argc, char **argv) {
  if (!torch::cuda::is_available())
    return skipWithoutCuda("easyedit-memit");
  try {
    edit(Arguments(argc, argv));
  } catch (const std::exception &error) {
    std::cerr << "error: " << error.what() << std::endl;
    return 1;
  }
  return 0;
}
