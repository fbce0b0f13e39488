// ShardedDataParallel trains like one process with all the data, in a fraction of the memory.
#include "Training.h"

#include <device_shim/Distributed.h>
#include <device_shim/Error.h>
#include <device_shim/GradScaler.h>
#include <device_shim/ShardedDataParallel.h>

#include <dlfcn.h>

using namespace device_shim;
using namespace training;
using ranks::Launch;

namespace {

constexpr int64_t kSamples = 24; // equally many for 2, 3 and 4 ranks

std::string variable(const char *name, const std::string &fallback = "") {
  const char *value = std::getenv(name);
  return value ? value : fallback;
}

// A residual layer, so that a stage has several uses of its input.
struct LayerImpl : torch::nn::Module {
  explicit LayerImpl(int64_t width) {
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
    up = register_module("up", torch::nn::Linear(width, 2 * width));
    down = register_module("down", torch::nn::Linear(2 * width, width));
  }
  torch::Tensor forward(const torch::Tensor &x) {
    return x + down->forward(torch::tanh(up->forward(norm->forward(x))));
  }
  torch::nn::LayerNorm norm{nullptr};
  torch::nn::Linear up{nullptr}, down{nullptr};
};
TORCH_MODULE(Layer);

struct StagedNetImpl : torch::nn::Module {
  StagedNetImpl() {
    for (int i = 0; i < 3; ++i)
      layers.push_back(register_module("h" + std::to_string(i), Stage<Layer>(kWidth)));
    head = register_module("head", Stage<torch::nn::Linear>(kWidth, kClasses));
    scale = register_buffer("scale", torch::full({1}, 1.5));
  }
  torch::Tensor forward(torch::Tensor x) {
    for (auto &layer : layers)
      x = layer->forward(x);
    return head->forward(x) * scale;
  }
  std::vector<Stage<Layer>> layers;
  Stage<torch::nn::Linear> head{nullptr};
  torch::Tensor scale;
};
TORCH_MODULE(StagedNet);

torch::nn::Sequential sequentialNet() {
  torch::manual_seed(1);
  return torch::nn::Sequential(torch::nn::Linear(kWidth, 20), torch::nn::Tanh(), Layer(20),
                               torch::nn::Linear(20, kClasses));
}

StagedNet stagedNet() {
  torch::manual_seed(1);
  return StagedNet();
}

std::unique_ptr<torch::optim::Optimizer> optimizerFor(std::vector<torch::Tensor> parameters) {
  if (variable("OPTIMIZER", "adamw") == "adamw")
    return std::make_unique<torch::optim::AdamW>(std::move(parameters), torch::optim::AdamWOptions(1e-2));
  return std::make_unique<torch::optim::SGD>(std::move(parameters),
                                             torch::optim::SGDOptions(0.1).momentum(0.9));
}

ShardedOptions wantedOptions() {
  ShardedOptions options;
  options.stage = std::stoi(variable("STAGE", "3"));
  options.offload_optimizer = !variable("OFFLOAD").empty();
  options.offload_parameters = variable("OFFLOAD") == "parameters";
  options.offload_ratio = std::stod(variable("RATIO", "1"));
  options.prefetch = variable("PREFETCH", "1") == "1";
  options.bucket_bytes = 2000;
  return options;
}

// The plain training that all is compared with; clipping triggers in most steps.
constexpr double kMaxNorm = 0.05;

template <typename Model>
std::vector<double> trainReference(Model &model, int first, int last, torch::optim::Optimizer &optimizer) {
  std::vector<double> norms;
  for (int step = first; step < last; ++step) {
    const auto batch = batchOf(step, kSamples);
    optimizer.zero_grad();
    loss(model->forward(batch.input), batch).backward();
    norms.push_back(torch::nn::utils::clip_grad_norm_(model->parameters(), kMaxNorm));
    optimizer.step();
  }
  return norms;
}

template <typename Model>
std::vector<double> trainSharded(ShardedDataParallel<Model> &model, Communicator &all, int first, int last,
                                 torch::optim::Optimizer &optimizer) {
  std::vector<double> norms;
  for (int step = first; step < last; ++step) {
    const auto own = batchOf(step, kSamples).part(all.rank(), all.size()).to(all.device());
    optimizer.zero_grad();
    loss(model.forward(own.input), own).backward();
    norms.push_back(model.unscale_and_clip_grads(kMaxNorm));
    optimizer.step();
    if (step % 7 == 0) { // an evaluation between the steps
      torch::NoGradGuard noGrad;
      model.forward(own.input);
    }
  }
  return norms;
}

template <typename Model> void compareRuns(Model (*make)()) {
  auto all = init_distributed();
  auto reference = make();
  auto one = optimizerFor(reference->parameters());
  const auto expected = trainReference(reference, 0, 20, *one);

  ShardedDataParallel<Model> model(make(), all, wantedOptions());
  auto many = optimizerFor(model.optimizer_parameters());
  const auto norms = trainSharded(model, *all, 0, 20, *many);
  size_t clipped = 0;
  for (size_t i = 0; i < norms.size(); ++i) {
    MUST(std::abs(norms[i] - expected[i]) < 1e-4 * (1 + expected[i]));
    clipped += norms[i] > kMaxNorm;
  }
  MUST(clipped > norms.size() / 2);

  bool onHost = false, onDevice = false;
  for (const auto &parameter : model.optimizer_parameters())
    (parameter.is_cpu() ? onHost : onDevice) = true;
  if (all->device().is_cuda() && variable("RATIO") == "0.5")
    MUST(onHost && onDevice);

  const auto path = variable("FOLDER") + "/model.pt";
  model.save(path, many.get());
  auto loaded = make();
  torch::load(loaded, path); // an ordinary model reads the file
  const auto difference = distance(loaded->parameters(), reference->parameters());
  if (all->rank() == 0)
    std::cout << "largest difference " << difference << std::endl;
  MUST(difference < 1e-5);
  all->barrier();
}

std::string describe(const Launch &launch) {
  std::string text = launch.worker + ", " + std::to_string(launch.count) + " ranks";
  for (const auto &[name, value] : launch.environment)
    if (name != "FOLDER")
      text += ", " + name + "=" + value;
  return text + (launch.virtualGpus >= 0 ? ", virtual GPUs: " : ": ");
}

void expectEqual(const char *worker, int count, bool gpus, std::map<std::string, std::string> environment) {
  environment["FOLDER"] = ranks::temporaryDirectory();
  const Launch launch{worker, count, gpus ? count : -1, environment};
  std::cout << describe(launch) << ranks::runAll(launch)[0].output << std::flush;
}

} // namespace

RANK_WORKER(sharded_sequential) { compareRuns<torch::nn::Sequential>(sequentialNet); }
RANK_WORKER(sharded_stages) { compareRuns<StagedNet>(stagedNet); }

TEST(Sharded, Stage3EqualsOneProcess) {
  expectEqual("sharded_sequential", 4, false, {});
  expectEqual("sharded_stages", 4, false, {{"OPTIMIZER", "sgd"}});
  expectEqual("sharded_stages", 2, false, {{"PREFETCH", "0"}});
  expectEqual("sharded_stages", 1, false, {});
}

TEST(Sharded, Stage2EqualsOneProcess) {
  expectEqual("sharded_stages", 4, false, {{"STAGE", "2"}});
  expectEqual("sharded_sequential", 2, false, {{"STAGE", "2"}, {"OPTIMIZER", "sgd"}});
}

TEST(Sharded, OnVirtualGpus) {
  if (!ranks::haveVirtualGpus())
    GTEST_SKIP() << "no library of virtual GPUs";
  expectEqual("sharded_stages", 4, true, {});
  expectEqual("sharded_stages", 2, true, {{"STAGE", "2"}, {"OFFLOAD", "optimizer"}});
}

// Partitions on the GPU and in host memory, and clipping: where DeepSpeed 0.14.1 fails.
TEST(Sharded, OffloadOnVirtualGpus) {
  if (!ranks::haveVirtualGpus())
    GTEST_SKIP() << "no library of virtual GPUs";
  expectEqual("sharded_stages", 4, true, {{"OFFLOAD", "optimizer"}, {"RATIO", "0.5"}});
  expectEqual("sharded_stages", 2, true, {{"OFFLOAD", "parameters"}});
}

// ---------------------------------------------------------------------------------------- saving, resuming

RANK_WORKER(sharded_first_half) {
  auto all = init_distributed();
  ShardedDataParallel<StagedNet> model(stagedNet(), all, wantedOptions());
  auto optimizer = optimizerFor(model.optimizer_parameters());
  trainSharded(model, *all, 0, 10, *optimizer);
  optimizer->param_groups()[0].options().set_lr(5e-3);
  GradScaler scaler;
  scaler.load_state({512, 7});
  model.save(variable("FOLDER") + "/half.pt", optimizer.get(), &scaler);
}

RANK_WORKER(sharded_second_half) {
  auto all = init_distributed();
  auto reference = stagedNet();
  auto one = optimizerFor(reference->parameters());
  trainReference(reference, 0, 10, *one);
  one->param_groups()[0].options().set_lr(5e-3);
  trainReference(reference, 10, 20, *one);

  torch::manual_seed(99); // other weights, which load() replaces
  ShardedDataParallel<StagedNet> model(StagedNet(), all, wantedOptions());
  auto many = optimizerFor(model.optimizer_parameters());
  GradScaler scaler;
  model.load(variable("FOLDER") + "/half.pt", many.get(), &scaler);
  MUST(scaler.state().scale == 512 && scaler.state().good_steps == 7);
  trainSharded(model, *all, 10, 20, *many);
  const auto path = variable("FOLDER") + "/whole.pt";
  model.save(path);
  auto loaded = stagedNet();
  torch::load(loaded, path);
  MUST(distance(loaded->parameters(), reference->parameters()) < 1e-5);
  MUST_THROW(model.load(path + ".missing"), Error, "cannot read");
  MUST_THROW(model.save("/nonexistent/folder/x.pt"), Error, "rank 0 could not save");
  all->barrier();
}

TEST(Sharded, ResumesWithAnotherNumberOfRanks) {
  const auto folder = ranks::temporaryDirectory();
  ranks::runAll({"sharded_first_half", 4, -1, {{"FOLDER", folder}}});
  ranks::runAll({"sharded_second_half", 2, -1, {{"FOLDER", folder}, {"STAGE", "2"}}});
  ranks::runAll({"sharded_second_half", 3, -1, {{"FOLDER", folder}}});
  if (ranks::haveVirtualGpus())
    ranks::runAll(
        {"sharded_second_half", 2, 2, {{"FOLDER", folder}, {"OFFLOAD", "optimizer"}, {"RATIO", "0.5"}}});
}

// ---------------------------------------------------------------------------------------- half types

RANK_WORKER(sharded_bfloat16) {
  auto all = init_distributed();
  auto options = wantedOptions();
  options.parameter_type = torch::kBFloat16;
  ShardedDataParallel<StagedNet> model(stagedNet(), all, options);
  auto optimizer = optimizerFor(model.optimizer_parameters());
  for (const auto &master : model.optimizer_parameters())
    MUST(master.scalar_type() == torch::kFloat);
  GradScalerOptions scaling;
  scaling.initial_scale = 3e38; // overflows a few times
  scaling.growth_interval = 8;
  scaling.backoff_factor = 1e-3;
  GradScaler scaler(scaling);
  int skipped = 0, taken = 0;
  double firstLoss = 0, lastLoss = 0;
  const auto batch = batchOf(0, kSamples).part(all->rank(), all->size()).to(all->device());
  for (int step = 0; step < 30; ++step) {
    const auto before = model.optimizer_parameters()[0].detach().clone();
    optimizer->zero_grad();
    auto output = model.forward(batch.input);
    MUST(output.scalar_type() == torch::kBFloat16 || output.scalar_type() == torch::kFloat);
    auto value = loss(output.to(torch::kFloat), batch);
    scaler.scale(value).backward();
    const double norm = model.unscale_and_clip_grads(1.0, &scaler);
    const bool done = scaler.step(*optimizer);
    scaler.update();
    MUST(done == std::isfinite(norm));
    MUST(done != before.equal(model.optimizer_parameters()[0].detach()));
    MUST(all->reduce_number(done, Reduction::minimum) == all->reduce_number(done, Reduction::maximum));
    (done ? taken : skipped) += 1;
    lastLoss = value.item<double>();
    firstLoss = step == 0 ? lastLoss : firstLoss;
  }
  MUST(skipped >= 1 && taken >= 20 && lastLoss < 0.5 * firstLoss);
}

TEST(Sharded, BFloat16WithLossScaling) {
  ranks::runAll({"sharded_bfloat16", 2});
  ranks::runAll({"sharded_bfloat16", 2, -1, {{"STAGE", "2"}}});
  if (ranks::haveVirtualGpus())
    ranks::runAll({"sharded_bfloat16", 4, 4, {{"OFFLOAD", "optimizer"}, {"RATIO", "0.5"}}});
}

TEST(GradScaler, GrowsAndShrinks) {
  GradScalerOptions options;
  options.initial_scale = 8;
  options.growth_interval = 2;
  GradScaler scaler(options);
  auto weight = torch::ones({2}, torch::requires_grad());
  torch::optim::SGD optimizer({weight}, 1.0);
  const auto step = [&](double gradient) {
    optimizer.zero_grad();
    scaler.scale((weight * gradient).sum()).backward();
    const bool done = scaler.step(optimizer);
    scaler.update();
    return done;
  };
  EXPECT_TRUE(step(0.5));
  EXPECT_FLOAT_EQ(weight[0].item<float>(), 0.5);
  EXPECT_EQ(scaler.scale(), 8);
  EXPECT_TRUE(step(0.5));
  EXPECT_EQ(scaler.scale(), 16);
  EXPECT_FALSE(step(INFINITY));
  EXPECT_FALSE(step(NAN));
  EXPECT_EQ(scaler.scale(), 4);
  EXPECT_FLOAT_EQ(weight[0].item<float>(), 0);
  scaler.unscale_(optimizer);
  EXPECT_THROW(scaler.unscale_(optimizer), UsageError);
}

// ---------------------------------------------------------------------------------------- memory

namespace {

// Bytes in use now and at most on a virtual GPU.
size_t peakOfGpu(int device) {
  auto *query = reinterpret_cast<void (*)(int, size_t *, size_t *, size_t *)>(
      dlsym(RTLD_DEFAULT, "virtual_cuda_memory"));
  MUST(query);
  size_t current = 0, peak = 0, limit = 0;
  query(device, &current, &peak, &limit);
  return peak;
}

constexpr int64_t kDeepWidth = 128;

torch::nn::Sequential deepNet() {
  torch::manual_seed(1);
  torch::nn::Sequential net;
  for (int i = 0; i < 80; ++i)
    net->push_back(torch::nn::Linear(kDeepWidth, kDeepWidth));
  return net;
}

} // namespace

RANK_WORKER(peak_memory) {
  auto all = init_distributed();
  torch::nn::Sequential net = deepNet();
  const auto input = torch::ones({1, kDeepWidth}, all->device());
  if (all->size() == 1) {
    net->to(all->device());
    torch::optim::AdamW optimizer(net->parameters(), 1e-4);
    for (int step = 0; step < 3; ++step) {
      optimizer.zero_grad();
      net->forward(input).sum().backward();
      optimizer.step();
    }
  } else {
    ShardedDataParallel<torch::nn::Sequential> model(net, all, wantedOptions());
    torch::optim::AdamW optimizer(model.optimizer_parameters(), 1e-4);
    for (int step = 0; step < 3; ++step) {
      optimizer.zero_grad();
      model.forward(input).sum().backward();
      optimizer.step();
    }
  }
  std::cout << "peak " << peakOfGpu(all->rank()) << std::endl;
}

TEST(Sharded, PeakMemoryOfARank) {
  if (!ranks::haveVirtualGpus())
    GTEST_SKIP() << "no library of virtual GPUs";
  const auto peakOf = [](const std::string &output) {
    return std::stod(output.substr(output.find("peak ") + 5));
  };
  const double whole = peakOf(ranks::runAll({"peak_memory", 1, 1})[0].output);
  for (const int count : {2, 4}) {
    for (const auto &ended : ranks::runAll({"peak_memory", count, count})) {
      const double share = peakOf(ended.output) / (whole / count);
      std::cout << count << " ranks: peak " << peakOf(ended.output) << " bytes, " << share
                << " of 1/world of the unsharded " << whole << "\n";
      EXPECT_LE(share, 1.15);
    }
  }
}

// ---------------------------------------------------------------------------------------- frozen, unused,
// refused

RANK_WORKER(sharded_frozen_parameters) {
  auto all = init_distributed();
  const auto freeze = [](StagedNet net) {
    // Only one small parameter in the middle learns, as with adapters.
    for (auto &entry : net->named_parameters())
      entry.value().set_requires_grad(entry.key() == "h1.module.norm.weight");
    return net;
  };
  auto reference = freeze(stagedNet());
  auto one = optimizerFor({reference->layers[1]->module->norm->weight});
  ShardedDataParallel<StagedNet> model(freeze(stagedNet()), all, wantedOptions());
  MUST(model.optimizer_parameters().size() == 1);
  auto many = optimizerFor(model.optimizer_parameters());
  for (int step = 0; step < 5; ++step) {
    const auto batch = batchOf(step, kSamples), own = batch.part(all->rank(), all->size());
    one->zero_grad();
    loss(reference->forward(batch.input), batch).backward();
    one->step();
    many->zero_grad();
    loss(model.forward(own.input), own).backward();
    many->step();
  }
  model.save(variable("FOLDER") + "/model.pt");
  auto loaded = stagedNet();
  torch::load(loaded, variable("FOLDER") + "/model.pt");
  MUST(distance(loaded->parameters(), reference->parameters()) < 1e-5);
  all->barrier();
}

TEST(Sharded, FrozenParameters) {
  ranks::runAll({"sharded_frozen_parameters", 2, -1, {{"FOLDER", ranks::temporaryDirectory()}}});
}

namespace {

struct RootParameterImpl : torch::nn::Module {
  RootParameterImpl() {
    token = register_parameter("token", torch::zeros({kWidth}));
    layer = register_module("layer", Stage<torch::nn::Linear>(kWidth, kClasses));
  }
  torch::Tensor forward(const torch::Tensor &x) { return layer->forward(x + token); }
  torch::Tensor token;
  Stage<torch::nn::Linear> layer{nullptr};
};
TORCH_MODULE(RootParameter);

} // namespace

RANK_WORKER(sharded_refuses) {
  auto all = init_distributed();
  MUST_THROW((ShardedDataParallel<Net>(Net(), all)), UsageError, "This model has no stage");
  MUST_THROW((ShardedDataParallel<RootParameter>(RootParameter(), all)), UsageError,
             "belong to no stage: token");
  ShardedOptions options;
  options.stage = 1;
  MUST_THROW((ShardedDataParallel<StagedNet>(StagedNet(), all, options)), UsageError, "stage is 1");
  auto tied = stagedNet();
  tied->layers[0]->module->up->register_parameter("again", tied->layers[2]->module->up->bias);
  options.stage = 2 + all->rank();
  MUST_THROW((ShardedDataParallel<StagedNet>(StagedNet(), all, options)), UsageError, "different options");
  MUST_THROW((ShardedDataParallel<StagedNet>(tied, all)), UsageError, "is the same as h0.module.up.again");
  MUST(!stagedNet()->layers[0]->hooks());
  StagedNet twice = stagedNet();
  ShardedDataParallel<StagedNet> model(twice, all);
  MUST_THROW((ShardedDataParallel<StagedNet>(twice, all)), UsageError, "belongs to a wrapper already");
}

TEST(Sharded, Refuses) { ranks::runAll({"sharded_refuses", 2}); }

// The second rank's pass has no gradient for a whole stage.
RANK_WORKER(sharded_unused_parameters) {
  auto all = init_distributed();
  auto net = stagedNet();
  ShardedDataParallel<StagedNet> model(net, all, wantedOptions());
  const auto batch = batchOf(0, 8);
  for (int step = 0; step < 2; ++step) {
    auto output = model.forward(batch.input);
    auto value =
        loss(all->rank() == 0 ? output : output.detach() + net->scale.clone().requires_grad_(), batch);
    if (all->rank() == 0) {
      value.backward();
    } else {
      // Something of the model must be in the loss for backward() to reach it.
      (value + 0 * output.sum()).backward();
    }
  }
  auto reference = stagedNet();
  loss(reference->forward(batch.input), batch).backward();
  const double expected = torch::nn::utils::clip_grad_norm_(reference->parameters(), 1e9) * 2 / all->size();
  MUST(std::abs(model.grad_norm() - expected) < 1e-5);
}

TEST(Sharded, ZeroGradientsOfARank) { ranks::runAll({"sharded_unused_parameters", 2}); }
