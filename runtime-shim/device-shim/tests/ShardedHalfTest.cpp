// ShardedDataParallel in half precision with dynamic loss scaling: overflows skip a step on all ranks,
// clipping is right wherever partitions are, and a job resumes with another number of ranks.
#include "Training.h"

#include <device_shim/Distributed.h>
#include <device_shim/GradScaler.h>
#include <device_shim/ShardedDataParallel.h>

using namespace device_shim;
using namespace training;

namespace {

constexpr int64_t kSamples = 24; // equally many for 2, 3 and 4 ranks
constexpr double kMaxNorm = 0.05;

std::string variable(const char *name, const std::string &fallback = "") {
  const char *value = std::getenv(name);
  return value ? value : fallback;
}

// A linear layer without a matrix product, which LibTorch 1.13 lacks for kHalf on the CPU.
struct HalfLayerImpl : torch::nn::Module {
  HalfLayerImpl(int64_t from, int64_t to) {
    weight = register_parameter("weight", torch::randn({to, from}) / std::sqrt(static_cast<double>(from)));
    bias = register_parameter("bias", torch::zeros({to}));
  }
  torch::Tensor forward(const torch::Tensor &x) { return (x.unsqueeze(-2) * weight).sum(-1) + bias; }
  torch::Tensor weight, bias;
};
TORCH_MODULE(HalfLayer);

struct HalfNetImpl : torch::nn::Module {
  HalfNetImpl() {
    first = register_module("first", Stage<HalfLayer>(kWidth, 16));
    second = register_module("second", Stage<HalfLayer>(16, 16));
    head = register_module("head", Stage<HalfLayer>(16, kClasses));
  }
  torch::Tensor forward(const torch::Tensor &x) {
    auto hidden = first->forward(x);
    hidden = second->forward(hidden * hidden);
    return head->forward(hidden);
  }
  Stage<HalfLayer> first{nullptr}, second{nullptr}, head{nullptr};
};
TORCH_MODULE(HalfNet);

HalfNet halfNet(int seed) {
  torch::manual_seed(seed);
  return HalfNet();
}

ShardedOptions wantedOptions() {
  ShardedOptions options;
  options.parameter_type = variable("TYPE", "half") == "half" ? torch::kHalf : torch::kBFloat16;
  options.stage = std::stoi(variable("STAGE", "3"));
  options.offload_optimizer = !variable("RATIO").empty();
  options.offload_ratio = std::stod(variable("RATIO", "1"));
  return options;
}

GradScalerOptions overflowingScale() {
  GradScalerOptions scaling;
  // The largest kHalf is 65504, the largest kBFloat16 3.4e38: the first steps overflow with these.
  const bool half = variable("TYPE", "half") == "half";
  scaling.initial_scale = half ? 1 << 26 : 1e42;
  scaling.backoff_factor = half ? 0.25 : 1e-3;
  scaling.growth_interval = 6;
  return scaling;
}

struct Trained {
  int skipped = 0, taken = 0, clipped = 0, grown = 0;
  double firstLoss = 0, lastLoss = 0;
};

// Holds every step to what must be so, whether it is taken or skipped.
Trained train(ShardedDataParallel<HalfNet> &model, Communicator &all, torch::optim::Optimizer &optimizer,
              GradScaler &scaler, int first, int last) {
  Trained trained;
  for (int step = first; step < last; ++step) {
    const auto own = batchOf(step % 4, kSamples).part(all.rank(), all.size()).to(all.device());
    std::vector<torch::Tensor> before;
    for (const auto &master : model.optimizer_parameters()) {
      MUST(master.scalar_type() == torch::kFloat);
      before.push_back(master.detach().clone());
    }
    optimizer.zero_grad();
    const auto output = model.forward(own.input);
    MUST(output.scalar_type() == *wantedOptions().parameter_type);
    const auto value = loss(output.to(torch::kFloat), own);
    scaler.scale(value).backward();
    const double scale = scaler.scale();
    const double norm = model.unscale_and_clip_grads(kMaxNorm, &scaler);
    if (std::isfinite(norm) && norm > kMaxNorm) {
      MUST(std::abs(model.grad_norm() - kMaxNorm) <
           1e-3 * kMaxNorm); // over all partitions, wherever they are
      ++trained.clipped;
    }
    const bool done = scaler.step(optimizer);
    scaler.update();
    MUST(done == std::isfinite(norm));
    MUST(all.reduce_number(done, Reduction::minimum) == all.reduce_number(done, Reduction::maximum));
    MUST(done ? scaler.scale() >= scale : scaler.scale() < scale);
    for (size_t i = 0; i < before.size(); ++i)
      MUST(done || before[i].equal(model.optimizer_parameters()[i].detach()));
    trained.grown += scaler.scale() > scale;
    (done ? trained.taken : trained.skipped) += 1;
    trained.lastLoss = all.reduce_number(value.item<double>(), Reduction::sum) / all.size();
    if (step == first)
      trained.firstLoss = trained.lastLoss;
  }
  return trained;
}

std::map<std::string, torch::Tensor> savedModel(const std::string &path) {
  auto net = halfNet(7);
  torch::load(net, path);
  std::map<std::string, torch::Tensor> values;
  for (const auto &entry : net->named_parameters())
    values[entry.key()] = entry.value().detach().clone();
  return values;
}

} // namespace

RANK_WORKER(half_trains) {
  auto all = init_distributed();
  ShardedDataParallel<HalfNet> model(halfNet(1), all, wantedOptions());
  if (variable("RATIO") == "0.5" && all->device().is_cuda()) {
    bool onHost = false, onDevice = false;
    for (const auto &master : model.optimizer_parameters())
      (master.is_cpu() ? onHost : onDevice) = true;
    MUST(onHost && onDevice);
  }
  torch::optim::AdamW optimizer(model.optimizer_parameters(), torch::optim::AdamWOptions(1e-2));
  GradScaler scaler(overflowingScale());
  const auto trained = train(model, *all, optimizer, scaler, 0, 40);
  if (all->rank() == 0)
    std::cout << trained.skipped << " steps skipped, " << trained.taken << " taken, " << trained.clipped
              << " clipped, loss " << trained.firstLoss << " to " << trained.lastLoss << std::endl;
  MUST(trained.skipped >= 2 && trained.taken >= 25 && trained.clipped >= 20 && trained.grown >= 1);
  MUST(trained.lastLoss < 0.7 * trained.firstLoss);
}

TEST(ShardedHalf, OverflowsAreSkippedOnAllRanks) {
  for (const char *type : {"half", "bfloat16"})
    for (const char *stage : {"3", "2"}) {
      const auto ended = ranks::runAll({"half_trains", 4, -1, {{"TYPE", type}, {"STAGE", stage}}});
      std::cout << type << ", stage " << stage << ": " << ended[0].output << std::flush;
    }
}

TEST(ShardedHalf, PartitionsOnSeveralDevicesAreClipped) {
  if (!ranks::haveVirtualGpus())
    GTEST_SKIP() << "no library of virtual GPUs";
  for (const char *type : {"half", "bfloat16"})
    ranks::runAll({"half_trains", 2, 2, {{"TYPE", type}, {"RATIO", "0.5"}}});
}

RANK_WORKER(half_first_part) {
  auto all = init_distributed();
  ShardedDataParallel<HalfNet> model(halfNet(1), all, wantedOptions());
  torch::optim::AdamW optimizer(model.optimizer_parameters(), torch::optim::AdamWOptions(1e-2));
  GradScaler scaler(overflowingScale());
  const auto trained = train(model, *all, optimizer, scaler, 0, 15);
  MUST(trained.skipped >= 2 && trained.taken >= 5);
  model.save(variable("FOLDER") + "/half.pt", &optimizer, &scaler);
  // The same job goes on: what resuming is compared with.
  train(model, *all, optimizer, scaler, 15, 20);
  model.save(variable("FOLDER") + "/whole.pt", &optimizer, &scaler);
}

RANK_WORKER(half_second_part) {
  auto all = init_distributed();
  const auto folder = variable("FOLDER"), name = folder + "/resumed-" + std::to_string(all->size());
  ShardedDataParallel<HalfNet> model(halfNet(99), all,
                                     wantedOptions()); // other weights, which load() replaces
  torch::optim::AdamW optimizer(model.optimizer_parameters(), torch::optim::AdamWOptions(1e-2));
  GradScaler scaler(overflowingScale());
  model.load(folder + "/half.pt", &optimizer, &scaler);
  const double scale = scaler.scale();
  MUST(scale < overflowingScale().initial_scale);
  // Saved again it is the same file: the float master weights went through no half type.
  model.save(name + "-again.pt", &optimizer, &scaler);
  const auto saved = savedModel(folder + "/half.pt"), again = savedModel(name + "-again.pt");
  for (const auto &[key, value] : saved)
    MUST(value.scalar_type() == torch::kFloat && value.equal(again.at(key)));
  const auto trained = train(model, *all, optimizer, scaler, 15, 20);
  MUST(trained.taken >= 4);
  model.save(name + ".pt", &optimizer, &scaler);
  const auto expected = savedModel(folder + "/whole.pt"), resumed = savedModel(name + ".pt");
  double difference = 0, moved = 0;
  for (const auto &[key, value] : expected) {
    difference = std::max(difference, (value - resumed.at(key)).abs().max().item<double>());
    moved = std::max(moved, (value - saved.at(key)).abs().max().item<double>());
  }
  if (all->rank() == 0)
    std::cout << all->size() << " ranks: difference " << difference << " after steps of " << moved
              << std::endl;
  // Sums over another number of ranks round differently in half precision.
  MUST(moved > 1e-3 && difference < (all->size() == 4 ? 1e-6 : 0.2) * moved);
  all->barrier();
}

TEST(ShardedHalf, ResumesWithAnotherNumberOfRanks) {
  const auto folder = ranks::temporaryDirectory();
  ranks::runAll({"half_first_part", 4, -1, {{"FOLDER", folder}}});
  for (const int count : {4, 2, 3}) {
    const std::string stage = count == 2 ? "2" : "3";
    const auto ended = ranks::runAll({"half_second_part", count, -1, {{"FOLDER", folder}, {"STAGE", stage}}});
    std::cout << ended[0].output << std::flush;
  }
  if (ranks::haveVirtualGpus())
    ranks::runAll({"half_second_part", 2, 2, {{"FOLDER", folder}, {"RATIO", "0.5"}}});
}
