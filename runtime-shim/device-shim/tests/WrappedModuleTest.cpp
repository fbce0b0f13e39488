// What a program does to a module after it was wrapped: loading, converting, writing into its parameters. It
// is followed, or refused; it never ends the training without a word.
#include "Training.h"

#include <device_shim/DispatchModel.h>
#include <device_shim/Distributed.h>
#include <device_shim/DistributedDataParallel.h>
#include <device_shim/Error.h>
#include <device_shim/Lora.h>
#include <device_shim/ShardedDataParallel.h>

using namespace device_shim;
using namespace training;
using torch::nn::Linear;
using torch::nn::Sequential;
using Parallel = DistributedDataParallel<Sequential>;
using Sharded = ShardedDataParallel<Sequential>;

namespace {

Sequential plainNet(int seed = 1) {
  torch::manual_seed(seed);
  return Sequential(Linear(kWidth, 8), torch::nn::Tanh(), Linear(8, kClasses));
}

std::string variable(const char *name, const std::string &fallback = "") {
  const char *value = std::getenv(name);
  return value ? value : fallback;
}

std::string file() { return variable("FOLDER") + "/model.pt"; }

// Rank 0 writes it.
void writePretrained(Communicator &all, const Sequential &net) {
  if (all.rank() == 0)
    torch::save(net, file());
  all.barrier();
}

ShardedOptions wantedOptions() {
  ShardedOptions options;
  options.stage = std::stoi(variable("STAGE", "3"));
  if (!variable("TYPE").empty())
    options.parameter_type = torch::kBFloat16;
  options.offload_optimizer = !variable("OFFLOAD").empty();
  return options;
}

template <typename Model>
void train(Model &model, torch::optim::Optimizer &optimizer, const Communicator &all, int steps = 10) {
  for (int step = 0; step < steps; ++step) {
    const auto own = batchOf(step, 32).part(all.rank(), all.size()).to(all.device());
    optimizer.zero_grad();
    loss(model.forward(own.input), own).backward();
    optimizer.step();
  }
}

void trainAlone(Sequential &net, int steps = 10) {
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  for (int step = 0; step < steps; ++step) {
    const auto batch = batchOf(step, 32);
    optimizer.zero_grad();
    loss(net->forward(batch.input), batch).backward();
    optimizer.step();
  }
}

void run(const char *worker, std::map<std::string, std::string> environment = {}, bool gpus = false) {
  environment["FOLDER"] = ranks::temporaryDirectory();
  ranks::runAll({worker, 2, gpus ? 2 : -1, environment});
}

} // namespace

// The usual order of programs: wrap, then load the checkpoint.
RANK_WORKER(wrapped_then_loaded) {
  auto all = init_distributed();
  auto reference = plainNet(2);
  reference->to(all->device());
  writePretrained(*all, reference);
  reference->to(torch::kCPU);
  for (const bool unused : {false, true}) {
    auto net = plainNet(1);
    net->to(all->device());
    DataParallelOptions options;
    options.find_unused_parameters = unused;
    Parallel model(net, all, options);
    torch::optim::SGD optimizer(net->parameters(), 0.1);
    train(model, optimizer, *all, 2);
    torch::load(net, file(), all->device());
    train(model, optimizer, *all);
    auto expected = plainNet(1);
    torch::load(expected, file(), torch::Device(torch::kCPU));
    trainAlone(expected);
    MUST(distance(net->parameters(), expected->parameters()) < 1e-5);
  }
  all->barrier();
}

TEST(WrappedModule, LoadedFilesAreTrained) {
  run("wrapped_then_loaded");
  if (ranks::haveVirtualGpus())
    run("wrapped_then_loaded", {}, true);
}

RANK_WORKER(wrapped_then_converted) {
  auto all = init_distributed();
  auto net = plainNet(1);
  Parallel model(net, all);
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  const auto input = torch::ones({2, kWidth});
  net->to(torch::kDouble);
  MUST_THROW(model.forward(input.to(torch::kDouble)), UsageError,
             "parameter 2.bias is Double [5] on cpu now, but was Float");
  net->to(torch::kFloat); // and back
  train(model, optimizer, *all);
  auto expected = plainNet(1);
  trainAlone(expected);
  MUST(distance(net->parameters(), expected->parameters()) < 1e-5);
  // Past the wrapper nobody could have followed.
  net->to(torch::kDouble);
  net->to(torch::kFloat);
  MUST_THROW(net->forward(input).sum().backward(), UsageError, "call forward() of the wrapper");
  net->zero_grad();
  train(model, optimizer, *all, 1);
  // A graph from before the change.
  net->zero_grad();
  auto output = model.forward(input * (1 + all->rank()));
  net->to(torch::kDouble);
  net->to(torch::kFloat);
  output.sum().backward();
  auto sum = net->parameters()[0].grad().clone();
  all->all_reduce(sum);
  MUST(sum.allclose(net->parameters()[0].grad() * 2));
}

TEST(WrappedModule, ConvertedAndBack) { run("wrapped_then_converted"); }

RANK_WORKER(wrapped_then_another_shape) {
  auto all = init_distributed();
  writePretrained(*all, Sequential(Linear(kWidth, 9), torch::nn::Tanh(), Linear(9, kClasses)));
  auto net = plainNet(1);
  Parallel model(net, all);
  torch::load(net, file());
  MUST_THROW(model.forward(torch::ones({2, kWidth})), UsageError,
             "parameter 2.weight is Float [5, 9] on cpu now, but was Float [5, 8]");
  all->barrier();
}

TEST(WrappedModule, FilesOfAnotherModel) { run("wrapped_then_another_shape"); }

// What a file, or its loading, says of devices does not hold for a dispatched model.
RANK_WORKER(dispatched_then_loaded) {
  using torch::nn::BatchNorm1d;
  const auto make = [](int seed) {
    torch::manual_seed(seed);
    return Sequential(Linear(kWidth, 8), BatchNorm1d(8), Linear(8, kClasses));
  };
  const torch::Device first(torch::kCUDA, 0), second(torch::kCUDA, 1);
  auto saved = make(2), net = make(1);
  torch::save(saved, file());
  net->forward(batchOf(1, 8).input).sum().backward(); // leaves gradients on the CPU
  auto model = dispatch_model(net, DeviceMap({{"0", first}, {"", second}}));
  model.forward(batchOf(1, 8).input).sum().backward();
  torch::optim::SGD optimizer(net->parameters(), 0.1), expected(saved->parameters(), 0.1);
  const auto step = [&](torch::optim::Optimizer &of, auto forward, torch::Device device) {
    const auto batch = batchOf(0, 8);
    of.zero_grad();
    loss(forward(batch.input), batch.to(device)).backward();
    of.step();
  };
  const auto own = [&](const torch::Tensor &x) { return model.forward(x); };
  step(optimizer, own, second);
  torch::load(net, file(), torch::Device(torch::kCPU));
  for (int i = 0; i < 3; ++i) {
    step(optimizer, own, second);
    step(expected, [&](const torch::Tensor &x) { return saved->forward(x); }, torch::kCPU);
    if (i == 1)
      net->to(first);
  }
  MUST(net->parameters()[0].device() == first && net->parameters()[5].device() == second);
  for (size_t i = 0; i < net->parameters().size(); ++i)
    MUST(distance({net->parameters()[i]}, {saved->parameters()[i]}) < 1e-5);
  net->to(torch::kCPU);
  c10::InferenceMode inference;
  net->eval();
  saved->eval();
  const auto input = batchOf(1, 8).input;
  MUST(distance({model.forward(input)}, {saved->forward(input)}) < 1e-5);
}

TEST(WrappedModule, DispatchedModulesAreLoaded) {
  if (!ranks::haveVirtualGpus())
    GTEST_SKIP() << "no library of virtual GPUs";
  ranks::runAll({"dispatched_then_loaded", 1, 2, {{"FOLDER", ranks::temporaryDirectory()}}});
}

// Modules that come after the wrapper have no hooks.
RANK_WORKER(wrapped_then_added) {
  auto all = init_distributed();
  const auto input = torch::ones({2, kWidth});
  for (const bool unused : {false, true}) {
    auto net = plainNet(1);
    DataParallelOptions options;
    options.find_unused_parameters = unused;
    Parallel model(net, all, options);
    model.forward(input).sum().backward();
    Linear added(kClasses, kClasses);
    for (auto &parameter : added->parameters())
      parameter.set_requires_grad(false);
    net->push_back(added);
    model.forward(input).sum().backward(); // it learns nothing
    for (auto &parameter : added->parameters())
      parameter.set_requires_grad(true);
    const std::string reason = "parameter 3.weight was added, or its module replaced, after "
                               "DistributedDataParallel was made";
    MUST_THROW(model.forward(input), UsageError, reason);
    MUST_THROW(net->forward(input).sum().backward(), UsageError, reason);
    {
      torch::NoGradGuard noGrad;
      model.forward(input);
    }
    // One that another wrapper averages.
    DistributedDataParallel<Linear> own(added, all);
    net->zero_grad();
    model.forward(input * (1 + all->rank())).sum().backward();
    for (const auto &parameter : net->parameters()) {
      auto sum = parameter.grad().clone();
      all->all_reduce(sum);
      MUST(sum.allclose(parameter.grad() * all->size()));
    }
  }
  // A child that takes the place of another, under the same name.
  Net net;
  DataParallelOptions options;
  options.find_unused_parameters = true;
  DistributedDataParallel<Net> model(net, all, options);
  net->second = net->replace_module("second", Linear(16, kClasses));
  MUST_THROW(model.forward(input), UsageError, "parameter second.weight was added, or its module replaced");
}

TEST(WrappedModule, AddedModulesAreRefused) { run("wrapped_then_added"); }

namespace {

void mustRefuse(Sharded &model, const std::string &reason) {
  const auto input = torch::ones({2, kWidth});
  MUST_THROW(model.forward(input), UsageError, reason);
  MUST_THROW(model.save(file() + ".not"), UsageError, reason);
  MUST_THROW(model.synchronize(), UsageError, reason);
}

const char *const kReplaced = "parameter 0.weight was replaced after ShardedDataParallel was made";
const char *const kWritten = "parameter 0.weight was changed in place after ShardedDataParallel was made";

} // namespace

RANK_WORKER(sharded_then_loaded) {
  auto all = init_distributed();
  writePretrained(*all, plainNet(2));
  for (const bool trained : {false, true})
    for (const bool frozen : {false, true}) {
      auto net = plainNet(1);
      if (frozen)
        net->parameters()[0].set_requires_grad(false);
      Sharded model(net, all, wantedOptions());
      torch::optim::SGD optimizer(model.optimizer_parameters(), 0.1);
      if (trained)
        train(model, optimizer, *all, 2);
      torch::load(net, file());
      mustRefuse(model, kReplaced);
      MUST_THROW(model.load(file()), UsageError, kReplaced);
    }
  // What to do instead.
  Sharded model(plainNet(1), all, wantedOptions());
  torch::optim::SGD optimizer(model.optimizer_parameters(), 0.1);
  model.load(file());
  train(model, optimizer, *all);
  model.save(file());
  auto expected = plainNet(2), loaded = plainNet(1);
  trainAlone(expected);
  torch::load(loaded, file());
  MUST(distance(loaded->parameters(), expected->parameters()) < (variable("TYPE").empty() ? 1e-5 : 3e-2));
  all->barrier();
}

RANK_WORKER(sharded_then_converted) {
  auto all = init_distributed();
  auto net = plainNet(1);
  const auto options = wantedOptions();
  Sharded model(net, all, options);
  net->to(torch::kDouble);
  net->to(torch::kFloat);
  const auto input = torch::ones({2, kWidth});
  MUST_THROW(model.forward(input), UsageError,
             options.stage == 2 ? kReplaced : "parameter 0.weight got another type after");
  if (options.stage == 2)
    MUST_THROW(net->forward(input).sum().backward(), UsageError, "call forward() of the wrapper");
}

TEST(WrappedModule, ShardedModulesAreLoadedByTheWrapper) {
  for (const char *stage : {"2", "3"}) {
    run("sharded_then_loaded", {{"STAGE", stage}});
    run("sharded_then_loaded", {{"STAGE", stage}, {"TYPE", "bfloat16"}});
    run("sharded_then_converted", {{"STAGE", stage}});
  }
}

// Own initialisation, or pretrained weights.
RANK_WORKER(sharded_then_written) {
  auto all = init_distributed();
  const auto pretrained = plainNet(2);
  if (all->device().is_cpu())
    writePretrained(*all, pretrained);
  auto net = plainNet(1);
  const auto options = wantedOptions();
  Sharded model(net, all, options);
  {
    torch::NoGradGuard noGrad;
    for (size_t i = 0; i < net->parameters().size(); ++i) {
      auto parameter = net->parameters()[i];
      if (options.stage == 2)
        parameter.copy_(pretrained->parameters()[i]);
      else
        parameter.fill_(0.5); // of nothing
    }
  }
  if (options.stage == 2 && !options.parameter_type && !options.offload_optimizer) {
    torch::optim::SGD optimizer(model.optimizer_parameters(), 0.1);
    train(model, optimizer, *all);
    model.synchronize();
    auto expected = plainNet(2);
    trainAlone(expected);
    MUST(distance(net->parameters(), expected->parameters()) < 1e-5);
    return;
  }
  mustRefuse(model, kWritten);
  if (all->device().is_cuda())
    return;
  model.load(file()); // writes all of them
  model.forward(torch::ones({2, kWidth})).sum().backward();
}

TEST(WrappedModule, ValuesWrittenIntoShardedModules) {
  run("sharded_then_written", {{"STAGE", "2"}});
  run("sharded_then_written", {{"STAGE", "2"}, {"TYPE", "bfloat16"}});
  run("sharded_then_written", {{"STAGE", "3"}});
  if (ranks::haveVirtualGpus())
    run("sharded_then_written", {{"STAGE", "2"}, {"OFFLOAD", "optimizer"}}, true);
}

// The base of a merged layer is frozen: its values are those of the module.
RANK_WORKER(sharded_then_merged) {
  auto all = init_distributed();
  Sequential net{LoraLinear(kWidth, kClasses)};
  Sharded model(net, all, wantedOptions());
  const auto input = torch::ones({2, kWidth});
  model.forward(input).sum().backward();
  model.synchronize();
  net->at<LoraLinearImpl>(0).merge();
  model.forward(input);
  net->at<LoraLinearImpl>(0).unmerge();
  model.forward(input).sum().backward();
}

TEST(WrappedModule, AdaptersMayBeMergedWithStage2) {
  run("sharded_then_merged", {{"STAGE", "2"}});
  run("sharded_then_merged", {{"STAGE", "2"}, {"TYPE", "bfloat16"}});
}
