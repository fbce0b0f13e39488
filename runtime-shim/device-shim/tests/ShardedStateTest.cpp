// What a sharded model holds is right whenever it is looked at: between backward() and step(), in files, in
// the module, and after resuming.
#include "Training.h"

#include <device_shim/Distributed.h>
#include <device_shim/Error.h>
#include <device_shim/GradScaler.h>
#include <device_shim/Lora.h>
#include <device_shim/ShardedDataParallel.h>

using namespace device_shim;
using namespace training;
using torch::nn::Linear;
using torch::nn::LinearOptions;
using torch::nn::Sequential;
using Sharded = ShardedDataParallel<Sequential>;

namespace {

std::string variable(const char *name, const std::string &fallback = "") {
  const char *value = std::getenv(name);
  return value ? value : fallback;
}

ShardedOptions wantedOptions() {
  ShardedOptions options;
  options.stage = std::stoi(variable("STAGE", "3"));
  options.offload_optimizer = !variable("OFFLOAD").empty();
  if (!variable("TYPE").empty())
    options.parameter_type = torch::kBFloat16;
  return options;
}

std::string file() { return variable("FOLDER") + "/model.pt"; }

Sequential plainNet(int seed = 1) {
  torch::manual_seed(seed);
  return Sequential(Linear(kWidth, 8), Linear(8, kClasses));
}

torch::Tensor evaluated(Sharded &model, const torch::Tensor &input) {
  torch::NoGradGuard noGrad;
  return model.forward(input).to(torch::kCPU, torch::kFloat);
}

void run(const char *worker, std::map<std::string, std::string> environment = {}, bool gpus = false) {
  environment["FOLDER"] = ranks::temporaryDirectory();
  ranks::runAll({worker, 2, gpus ? 2 : -1, environment});
}

} // namespace

// Optimizers write through data(), which no version counter shows.
RANK_WORKER(state_forward_before_step) {
  auto all = init_distributed();
  auto reference = plainNet();
  torch::optim::SGD one(reference->parameters(), 0.1);
  Sharded model(plainNet(), all, wantedOptions());
  torch::optim::SGD many(model.optimizer_parameters(), 0.1);
  const auto input = torch::ones({2, kWidth}), own = input.to(all->device());
  for (int step = 0; step < 3; ++step) {
    one.zero_grad();
    reference->forward(input).square().mean().backward();
    many.zero_grad();
    model.forward(own).to(torch::kFloat).square().mean().backward();
    evaluated(model, own); // a validation batch, say
    one.step();
    many.step();
    torch::NoGradGuard noGrad;
    const double allowed = variable("TYPE").empty() ? 1e-5 : 2e-2;
    MUST(distance({evaluated(model, own)}, {reference->forward(input)}) < allowed);
  }
}

TEST(ShardedState, ForwardBetweenBackwardAndStep) {
  run("state_forward_before_step", {{"STAGE", "2"}});
  run("state_forward_before_step", {{"STAGE", "3"}});
  run("state_forward_before_step", {{"TYPE", "bfloat16"}});
  if (ranks::haveVirtualGpus())
    run("state_forward_before_step", {{"OFFLOAD", "optimizer"}}, true);
}

RANK_WORKER(state_of_the_module) {
  auto all = init_distributed();
  auto reference = plainNet(), net = plainNet();
  torch::optim::SGD one(reference->parameters(), 0.1);
  const auto input = torch::ones({2, kWidth});
  {
    ShardedOptions options;
    options.stage = 2;
    Sharded model(net, all, options);
    torch::optim::SGD many(model.optimizer_parameters(), 0.1);
    for (int step = 0; step < 2; ++step) {
      one.zero_grad();
      reference->forward(input).square().mean().backward();
      one.step();
      many.zero_grad();
      model.forward(input).square().mean().backward();
      many.step();
      if (step == 0) {
        model.synchronize();
        MUST(distance(net->parameters(), reference->parameters()) < 1e-5);
      }
    }
  }
  MUST(distance(net->parameters(), reference->parameters()) < 1e-5);
}

TEST(ShardedState, ModuleFollowsWithStage2) { run("state_of_the_module"); }

RANK_WORKER(state_of_another_optimizer) {
  auto all = init_distributed();
  Sharded model(plainNet(), all, wantedOptions());
  torch::optim::Adam adam(model.optimizer_parameters(), 0.1);
  torch::optim::AdamW decayed(model.optimizer_parameters(), 0.1);
  torch::optim::SGD sgd(model.optimizer_parameters(), 0.1);
  model.forward(torch::ones({2, kWidth})).square().mean().backward();
  adam.step();
  model.save(file(), &adam);
  model.load(file(), &adam);
  MUST_THROW(model.load(file(), &sgd), UsageError, "state of 'adam', but this optimizer is 'sgd'");
  MUST_THROW(model.load(file(), &decayed), UsageError, "this optimizer is 'adamw'");
}

TEST(ShardedState, OptimizerMustBeTheSavedOne) { run("state_of_another_optimizer"); }

RANK_WORKER(state_frozen) {
  auto all = init_distributed();
  const auto make = [](int seed) {
    auto net = plainNet(seed);
    net->named_parameters()["0.weight"].set_requires_grad(false);
    return net;
  };
  auto saved = make(1);
  Sharded(make(1), all, wantedOptions()).save(file());
  auto net = make(2);
  Sharded model(net, all, wantedOptions());
  model.load(file());
  const auto input = torch::ones({2, kWidth});
  torch::NoGradGuard noGrad;
  const double allowed = variable("TYPE").empty() ? 1e-6 : 2e-2;
  MUST(distance({evaluated(model, input)}, {saved->forward(input)}) < allowed);
  all->barrier();
  model.save(file());
  auto loaded = plainNet(3);
  torch::load(loaded, file());
  for (const auto &parameter : loaded->parameters())
    MUST(parameter.scalar_type() == torch::kFloat);
  MUST(distance({loaded->forward(input)}, {saved->forward(input)}) < allowed);
  all->barrier();
  net->named_parameters()["0.weight"].set_requires_grad(true);
  MUST_THROW(model.forward(input), UsageError, "parameter 0.weight was frozen when ShardedDataParallel");
}

TEST(ShardedState, FrozenParameters) {
  for (const char *stage : {"2", "3"}) {
    run("state_frozen", {{"STAGE", stage}});
    run("state_frozen", {{"STAGE", stage}, {"TYPE", "bfloat16"}});
  }
}

namespace {

struct TiedBlockImpl : torch::nn::Module {
  TiedBlockImpl() {
    encoder = register_module("encoder", Linear(LinearOptions(kWidth, kWidth).bias(false)));
    decoder = register_module("decoder", Projection(encoder->weight));
  }
  torch::Tensor forward(const torch::Tensor &x) { return decoder->forward(torch::tanh(encoder->forward(x))); }
  Linear encoder{nullptr};
  Projection decoder{nullptr};
};
TORCH_MODULE(TiedBlock);

} // namespace

RANK_WORKER(state_tied) {
  auto all = init_distributed();
  torch::manual_seed(1);
  const auto make = [] { return Sequential(TiedBlock(), Linear(kWidth, kClasses)); };
  Sharded model(make(), all, wantedOptions());
  torch::optim::SGD optimizer(model.optimizer_parameters(), 0.1);
  const auto input = torch::ones({2, kWidth});
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    model.forward(input).square().sum().backward();
    model.unscale_and_clip_grads(1);
    optimizer.step();
  }
  model.save(file());
  auto loaded = make();
  torch::load(loaded, file());
  auto named = loaded->named_parameters();
  MUST(named["0.decoder.weight"].equal(named["0.encoder.weight"]));
  torch::NoGradGuard noGrad;
  MUST(distance({loaded->forward(input)}, {evaluated(model, input)}) < 1e-5);
  all->barrier();
}

TEST(ShardedState, TiedParametersAreSavedUnderEachName) {
  run("state_tied", {{"STAGE", "2"}});
  run("state_tied", {{"STAGE", "3"}});
}

namespace {

ShardedOptions biasesApart() {
  auto options = wantedOptions();
  options.group = [](const std::string &name, const torch::Tensor &) {
    return name.find("bias") != std::string::npos ? 1 : 0;
  };
  return options;
}

// Momentum for the weights only.
std::unique_ptr<torch::optim::SGD> momentumForWeights(ShardedCore &model) {
  std::vector<torch::optim::OptimizerParamGroup> groups;
  for (const int group : {0, 1})
    groups.emplace_back(model.optimizer_parameters(group),
                        std::make_unique<torch::optim::SGDOptions>(
                            torch::optim::SGDOptions(0.1).momentum(group == 0 ? 0.9 : 0)));
  return std::make_unique<torch::optim::SGD>(std::move(groups), torch::optim::SGDOptions(0.1));
}

void trainOneStep(Sharded &model, torch::optim::Optimizer &optimizer) {
  for (auto &parameter : model.optimizer_parameters())
    parameter.mutable_grad() = torch::Tensor();
  model.forward(torch::ones({2, kWidth})).square().mean().backward();
  optimizer.step();
}

} // namespace

RANK_WORKER(state_of_a_part) {
  auto all = init_distributed();
  const auto input = torch::ones({2, kWidth});
  Sharded model(plainNet(), all, biasesApart()), resumed(plainNet(2), all, biasesApart());
  const auto groups = momentumForWeights(model), groupsAgain = momentumForWeights(resumed);
  trainOneStep(model, *groups);
  model.save(file(), groups.get());
  trainOneStep(resumed, *groupsAgain); // momentum that load() replaces
  resumed.load(file(), groupsAgain.get());
  trainOneStep(model, *groups);
  trainOneStep(resumed, *groupsAgain);
  MUST(distance({evaluated(model, input)}, {evaluated(resumed, input)}) == 0);
  // An optimizer of some parameters.
  torch::optim::Adam part(model.optimizer_parameters(0), 1e-2),
      partAgain(resumed.optimizer_parameters(0), 1e-2);
  trainOneStep(model, part);
  model.save(file(), &part);
  resumed.load(file(), &partAgain);
  trainOneStep(model, part);
  trainOneStep(resumed, partAgain);
  MUST(distance({evaluated(model, input)}, {evaluated(resumed, input)}) == 0);
  // What has one state now had two.
  Sharded together(plainNet(), all, wantedOptions());
  torch::optim::Adam whole(together.optimizer_parameters(), 1e-2);
  MUST_THROW(together.load(file(), &whole), Error, "other optimizer state for");
}

TEST(ShardedState, ResumesWithStateOfSomeParameters) {
  run("state_of_a_part");
  run("state_of_a_part", {{"STAGE", "2"}});
}

RANK_WORKER(state_of_another_shape) {
  auto all = init_distributed();
  const auto make = [](int64_t in, int64_t out) {
    return Sequential(Linear(LinearOptions(in, out).bias(false)), Linear(LinearOptions(out, in).bias(false)));
  };
  Sharded(make(2, 6), all).save(file());
  Sharded other(make(6, 2), all);
  MUST_THROW(other.load(file()), Error, "'0.weight' with the shape [6, 2] instead of [2, 6]");
}

TEST(ShardedState, AnotherShapeIsRefused) { run("state_of_another_shape"); }

RANK_WORKER(state_of_adapters) {
  auto all = init_distributed();
  const auto make = [] {
    torch::manual_seed(1);
    return Sequential(LoraLinear(kWidth, 8), LoraLinear(8, kClasses));
  };
  auto net = make();
  train_only_adapters(*net);
  Sharded model(net, all);
  torch::optim::SGD optimizer(model.optimizer_parameters(), 0.1);
  const auto input = torch::ones({2, kWidth});
  for (int step = 0; step < 2; ++step) {
    model.forward(input).square().mean().backward();
    optimizer.step();
  }
  MUST_THROW(save_adapters(*net, file()), UsageError, "ShardedDataParallel::save_adapters()");
  MUST_THROW(net->at<LoraLinearImpl>(0).merge(), UsageError, "has no values");
  MUST(!net->at<LoraLinearImpl>(0).merged());
  model.save_adapters(file());
  auto loaded = make();
  load_adapters(*loaded, file());
  MUST_THROW(load_adapters(*net, file()), UsageError, "has no values");
  LoraOptions half;
  half.alpha = 8;
  Sequential other(LoraLinear(kWidth, 8), LoraLinear(8, kClasses, half));
  MUST_THROW(load_adapters(*other, file()), Error, "was trained with alpha 16, but this layer has 8");
  torch::NoGradGuard noGrad;
  MUST(distance({loaded->forward(input)}, {evaluated(model, input)}) < 1e-6);
  all->barrier();
}

TEST(ShardedState, AdaptersAlone) { run("state_of_adapters"); }

namespace {

struct ShiftImpl : torch::nn::Module {
  ShiftImpl() {
    layer = register_module("layer", Linear(kWidth, kClasses));
    shift = register_buffer("shift", torch::full({kWidth}, 1.00390625)); // no value of bfloat16
  }
  torch::Tensor forward(const torch::Tensor &x) { return layer->forward(x + shift); }
  Linear layer{nullptr};
  torch::Tensor shift;
};
TORCH_MODULE(Shift);

} // namespace

RANK_WORKER(state_of_buffers) {
  auto all = init_distributed();
  ShardedOptions options = wantedOptions();
  options.parameter_type = torch::kBFloat16;
  Sharded model(Sequential(Shift()), all, options);
  auto output = model.forward(torch::ones({2, kWidth}));
  MUST(output.scalar_type() == torch::kBFloat16);
  output.sum().backward();
  model.save(file());
  Sequential loaded{Shift()};
  torch::load(loaded, file());
  MUST(loaded->buffers()[0].scalar_type() == torch::kFloat);
  loaded->forward(torch::ones({2, kWidth}));
  all->barrier();
  // Running statistics, too.
  Sharded normalized(Sequential(Linear(kWidth, 8), torch::nn::BatchNorm1d(8)), all, options);
  normalized.forward(torch::randn({4, kWidth})).sum().backward();
}

TEST(ShardedState, BuffersHaveTheTypeOfTheParameters) { run("state_of_buffers"); }

RANK_WORKER(state_of_other_optimizers) {
  auto all = init_distributed();
  for (const int stage : {2, 3}) {
    auto net = plainNet();
    ShardedOptions options;
    options.stage = stage;
    torch::optim::SGD early(net->parameters(), 0.1);
    Sharded model(net, all, options);
    torch::optim::SGD late(net->parameters(), 0.1), foreign(plainNet()->parameters(), 0.1);
    for (auto *optimizer : {&early, &late}) {
      MUST_THROW(model.save(file(), optimizer), UsageError, "make it of optimizer_parameters()");
      GradScaler scaler;
      MUST_THROW(scaler.step(*optimizer), UsageError, "make it of optimizer_parameters()");
    }
    MUST_THROW(model.save(file(), &foreign), UsageError, "works on no partition of this model");
    model.save(file());
    torch::optim::SGD own(model.optimizer_parameters(), 0.1);
    GradScaler scaler;
    MUST_THROW(model.load(file(), &late), UsageError, "make it of optimizer_parameters()");
    MUST_THROW(model.load(file(), &own), Error, "has no state of an optimizer");
    model.save(file(), &own);
    MUST_THROW(model.load(file(), &own, &scaler), Error, "has no state of a GradScaler");
    model.load(file(), &own);
    all->barrier();
  }
}

TEST(ShardedState, OptimizersOfOtherParametersAreRefused) { run("state_of_other_optimizers"); }

RANK_WORKER(state_without_buffers) {
  auto all = init_distributed();
  Sharded(Sequential(Linear(kWidth, 8), torch::nn::LayerNorm(torch::nn::LayerNormOptions({8}))), all)
      .save(file());
  Sharded model(Sequential(Linear(kWidth, 8), torch::nn::BatchNorm1d(8)), all);
  MUST_THROW(model.load(file()), Error, "has no buffer '1.");
  const auto other = file() + std::to_string(all->rank());
  std::ofstream(other) << "something else";
  MUST_THROW(model.load(other), Error, other + "' is not a complete file of save()");
  all->barrier();
}

TEST(ShardedState, MissingBuffersAreNamed) { run("state_without_buffers"); }

RANK_WORKER(state_of_merged_adapters) {
  auto all = init_distributed();
  Sequential net{LoraLinear(kWidth, kClasses)};
  ShardedOptions options;
  options.stage = 2;
  Sharded model(net, all, options);
  model.save(file());
  net->at<LoraLinearImpl>(0).merge();
  MUST_THROW(model.save(file()), UsageError, "the adapters of '0' are merged into their base");
  MUST_THROW(model.load(file()), UsageError, "call unmerge() first");
  net->at<LoraLinearImpl>(0).unmerge();
  model.load(file());
}

TEST(ShardedState, MergedAdaptersAreRefused) { run("state_of_merged_adapters"); }
