// When a sharded model gathers, reduces and frees: models whose stages run in another order than they are
// registered, leave parameters out, or use them in unusual ways.
#include "Training.h"

#include <device_shim/Distributed.h>
#include <device_shim/Error.h>
#include <device_shim/ShardedDataParallel.h>

using namespace device_shim;
using namespace training;
using torch::nn::Linear;
using torch::nn::Sequential;
using Sharded = ShardedDataParallel<Sequential>;

namespace {

constexpr int kLayers = 80;
constexpr int64_t kBarWidth = 32;

struct LayerWithExtraImpl : torch::nn::Module {
  explicit LayerWithExtraImpl(bool extra) {
    layer = register_module("layer", Linear(kBarWidth, kBarWidth));
    if (extra)
      unused = register_parameter("unused", torch::ones({1}));
  }
  torch::Tensor forward(const torch::Tensor &x) { return layer->forward(x); }
  Linear layer{nullptr};
  torch::Tensor unused;
};
TORCH_MODULE(LayerWithExtra);

struct DeepImpl : torch::nn::Module {
  DeepImpl(const std::string &how) {
    torch::manual_seed(1);
    for (int i = 0; i < kLayers; ++i)
      layers.emplace_back(how == "unused" && i == kLayers - 1);
    for (int i = 0; i < kLayers; ++i) {
      const int next = how == "reversed" ? kLayers - 1 - i : i;
      register_module("h" + std::to_string(next), layers[next]);
    }
    twice = how == "twice";
    if (how == "frozen")
      for (int i = 0; i < kLayers; i += 2)
        for (auto &parameter : layers[i]->parameters())
          parameter.set_requires_grad(false);
  }
  torch::Tensor forward(torch::Tensor x) {
    for (auto &layer : layers)
      x = torch::tanh(layer->forward(x));
    return twice ? layers[kLayers - 2]->forward(x) : x;
  }
  std::vector<Stage<LayerWithExtra>> layers;
  bool twice = false;
};
TORCH_MODULE(Deep);

int64_t bytesOf(const std::vector<torch::Tensor> &tensors, bool trainable) {
  int64_t bytes = 0;
  for (const auto &tensor : tensors)
    bytes += !trainable || tensor.requires_grad() ? tensor.numel() * 4 : 0;
  return bytes;
}

} // namespace

// Parameters and gradients need little more than this rank's share of them.
RANK_WORKER(passes_peak) {
  auto all = init_distributed();
  const std::string how = std::getenv("HOW");
  Deep net(how), reference(how);
  const auto whole = bytesOf(reference->parameters(), false) + bytesOf(reference->parameters(), true);
  ShardedDataParallel<Deep> model(net, all);
  const auto input = torch::ones({1, kBarWidth});
  for (int step = 0; step < 2; ++step) {
    for (auto &parameter : model.optimizer_parameters())
      parameter.mutable_grad() = torch::Tensor();
    model.forward(input).sum().backward();
    reference->zero_grad();
    reference->forward(input).sum().backward();
    double expected = 0;
    for (const auto &parameter : reference->parameters())
      if (parameter.grad().defined())
        expected += parameter.grad().square().sum().item<double>();
    MUST(std::abs(model.grad_norm() - std::sqrt(expected)) < 1e-4 * std::sqrt(expected));
  }
  const double share =
      static_cast<double>(model.peak_bytes_held()) / (static_cast<double>(whole) / all->size());
  std::cout << how << ": peak " << share << " of 1/world" << std::endl;
  MUST(share <= 1.15);
}

TEST(ShardedPasses, PeakMemory) {
  for (const char *how : {"plain", "reversed", "unused", "twice", "frozen"})
    std::cout << ranks::runAll({"passes_peak", 4, -1, {{"HOW", how}}})[0].output << std::flush;
}

RANK_WORKER(passes_count_memory) {
  auto all = init_distributed();
  Sharded model(Sequential(Linear(64, 64), Linear(64, 64)), all);
  std::vector<int64_t> held, peaks;
  for (int step = 0; step < 4; ++step) {
    const auto output = model.forward(torch::ones({2, 64}));
    for (auto &parameter : model.optimizer_parameters())
      parameter.mutable_grad() = torch::Tensor(); // zero_grad() of LibTorch 2
    const auto without = model.bytes_held();
    output.sum().backward();
    held.push_back(model.bytes_held());
    peaks.push_back(model.peak_bytes_held());
    int64_t gradients = 0;
    for (auto &parameter : model.optimizer_parameters())
      gradients += parameter.grad().numel() * 4;
    MUST(held.back() - without == gradients);
  }
  MUST(held[1] == held[0] && held[3] == held[0] && peaks[3] == peaks[1]);
}

TEST(ShardedPasses, FreedGradientsAreNotCounted) { ranks::runAll({"passes_count_memory", 2}); }

namespace {

// The weight is needed after its gradient is there.
struct DetachedImpl : torch::nn::Module {
  DetachedImpl() { weight = register_parameter("weight", torch::randn({kWidth, kWidth})); }
  torch::Tensor forward(const torch::Tensor &x) {
    return torch::matmul(torch::matmul(x, weight.detach()).tanh(), weight);
  }
  torch::Tensor weight;
};
TORCH_MODULE(Detached);

Sequential detachedNet() {
  torch::manual_seed(1);
  return Sequential(Linear(kWidth, kWidth), Detached(), Linear(kWidth, kClasses));
}

} // namespace

RANK_WORKER(passes_detached_use) {
  auto all = init_distributed();
  for (const bool prefetch : {false, true}) {
    ShardedOptions options;
    options.prefetch = prefetch;
    Sharded model(detachedNet(), all, options);
    auto reference = detachedNet();
    const auto input = torch::ones({2, kWidth});
    // Two graphs at once, gone back through together and then one after the other.
    (model.forward(input).square().sum() + model.forward(2 * input).square().sum()).backward();
    auto first = model.forward(input).square().sum(), second = model.forward(2 * input).square().sum();
    first.backward();
    second.backward();
    for (int pass = 0; pass < 2; ++pass)
      for (const int factor : {1, 2})
        reference->forward(factor * input).square().sum().backward();
    const double expected = torch::nn::utils::clip_grad_norm_(reference->parameters(), 1e9);
    MUST(std::abs(model.grad_norm() - expected) < 1e-4 * expected);
  }
}

TEST(ShardedPasses, WeightUsedWithoutGradient) { ranks::runAll({"passes_detached_use", 2}); }

RANK_WORKER(passes_second_order) {
  auto all = init_distributed();
  const auto gradientOf = [](const torch::Tensor &y, const torch::Tensor &x) {
    return torch::autograd::grad({y}, {x}, {}, /*retain_graph=*/true, /*create_graph=*/true)[0];
  };
  auto input = torch::ones({2, kWidth}, torch::requires_grad());
  Sharded model(detachedNet(), all);
  MUST_THROW(gradientOf(model.forward(input).sum(), input), UsageError,
             "create_graph=true came to stage '2'");
  // The next pass is as if nothing had been.
  model.forward(input).sum().backward();
  auto reference = detachedNet();
  reference->forward(input).sum().backward();
  const double expected = torch::nn::utils::clip_grad_norm_(reference->parameters(), 1e9);
  MUST(std::abs(model.grad_norm() - expected) < 1e-4 * expected);
}

TEST(ShardedPasses, GradientsOfGradientsAreRefused) { ranks::runAll({"passes_second_order", 2}); }

// ---------------------------------------------------------------------------------------- kinds of stages

namespace {

struct PairImpl : torch::nn::Module {
  PairImpl() { layer = register_module("layer", Linear(kWidth, kWidth)); }
  std::tuple<torch::Tensor, torch::Tensor> forward(const torch::Tensor &x, const torch::Tensor &y) {
    return {layer->forward(x), y};
  }
  Linear layer{nullptr};
};
TORCH_MODULE(Pair);

struct JoinImpl : torch::nn::Module {
  JoinImpl() { layer = register_module("layer", Linear(kWidth, kClasses)); }
  torch::Tensor forward(const std::tuple<torch::Tensor, torch::Tensor> &pair) {
    return layer->forward(std::get<0>(pair) + std::get<1>(pair));
  }
  Linear layer{nullptr};
};
TORCH_MODULE(Join);

struct NamedOutputsImpl : torch::nn::Module {
  NamedOutputsImpl() { layer = register_module("layer", Linear(kWidth, kClasses)); }
  std::map<std::string, torch::Tensor> forward(const torch::Tensor &x) {
    return {{"logits", layer->forward(torch::tanh(x * layer->weight.sum()))}};
  }
  Linear layer{nullptr};
};
TORCH_MODULE(NamedOutputs);

struct MapNetImpl : torch::nn::Module {
  MapNetImpl() { head = register_module("head", Stage<NamedOutputs>()); }
  torch::Tensor forward(const torch::Tensor &x) { return head->forward(x)["logits"]; }
  Stage<NamedOutputs> head{nullptr};
};
TORCH_MODULE(MapNet);

struct Answer {
  torch::Tensor logits;
};
struct AnsweringImpl : torch::nn::Module {
  Answer forward(const torch::Tensor &x) { return {x}; }
};
TORCH_MODULE(Answering);

// Not what Sequential does.
struct ResidualImpl : torch::nn::SequentialImpl {
  using torch::nn::SequentialImpl::SequentialImpl;
  torch::Tensor forward(const torch::Tensor &x) { return x + 10 * torch::nn::SequentialImpl::forward(x); }
};
TORCH_MODULE(Residual);

Residual residual() {
  torch::manual_seed(1);
  return Residual(Linear(kWidth, kWidth), Linear(kWidth, kWidth));
}

template <typename Model> Model made() {
  torch::manual_seed(1);
  return Model();
}

} // namespace

static_assert(
    device_shim::detail::Transparent<std::tuple<torch::Tensor, std::vector<torch::Tensor>>>::check());
static_assert(device_shim::detail::Transparent<std::map<int, std::array<torch::Tensor, 2>>>::check());
static_assert(device_shim::detail::Transparent<std::optional<std::pair<torch::Tensor, double>>>::check());
static_assert(!device_shim::detail::Transparent<Answer>::check());
static_assert(!device_shim::detail::Transparent<std::tuple<int, std::vector<Answer>>>::check());

RANK_WORKER(passes_kinds_of_stages) {
  auto all = init_distributed();
  const auto input = torch::ones({2, kWidth}), other = torch::full({2, kWidth}, 2.0);
  const auto expectNorm = [](double norm, torch::nn::Module &reference) {
    const double expected = torch::nn::utils::clip_grad_norm_(reference.parameters(), 1e9);
    MUST(std::abs(norm - expected) < 1e-4 * expected);
  };
  const auto pairs = [] {
    torch::manual_seed(1);
    return Sequential(Pair(), Join());
  };
  Sharded model(pairs(), all);
  model.forward(input, other).square().sum().backward();
  auto reference = pairs();
  reference->forward(input, other).square().sum().backward();
  expectNorm(model.grad_norm(), *reference);

  ShardedDataParallel<MapNet> map(made<MapNet>(), all);
  map.forward(input).square().sum().backward();
  auto plainMap = made<MapNet>();
  plainMap->forward(input).square().sum().backward();
  expectNorm(map.grad_norm(), *plainMap);

  Sequential unknown{Answering()};
  unknown->push_back(Linear(kWidth, kWidth));
  Sharded broken(unknown, all);
  MUST_THROW(broken.forward(input), UsageError, "child '0' of the Sequential returns");
}

TEST(ShardedPasses, KindsOfStages) { ranks::runAll({"passes_kinds_of_stages", 2}); }

RANK_WORKER(passes_own_forward) {
  auto all = init_distributed();
  const auto input = torch::ones({2, kWidth});
  MUST_THROW((ShardedDataParallel<Residual>(residual(), all)), UsageError,
             "A class derived from torch::nn::Sequential may have a forward() of its own");
  ShardedOptions options;
  options.stage = 2;
  ShardedDataParallel<Residual> model(residual(), all, options);
  MUST(distance({model.forward(input)}, {residual()->forward(input)}) < 1e-5);
}

TEST(ShardedPasses, DerivedSequentialKeepsItsForward) { ranks::runAll({"passes_own_forward", 2}); }

// ---------------------------------------------------------------------------------------- failed and frozen

namespace {

double normOf(torch::nn::Module &reference) {
  return torch::nn::utils::clip_grad_norm_(reference.parameters(), 1e9);
}

bool close(double value, double expected) { return std::abs(value - expected) < 1e-4 * expected; }

void dropGradients(const std::vector<torch::Tensor> &parameters) {
  for (auto parameter : parameters)
    parameter.mutable_grad() = torch::Tensor();
}

struct TwoWaysImpl : torch::nn::Module {
  TwoWaysImpl() {
    late = register_module("late", Linear(kWidth, kWidth));
    early = register_module("early", Linear(kWidth, kWidth));
  }
  // Autograd begins with what was recorded last.
  torch::Tensor forward(const torch::Tensor &x) { return Gate::apply(late->forward(x)) + early->forward(x); }
  Linear late{nullptr}, early{nullptr};
};
TORCH_MODULE(TwoWays);

struct LinearStagesImpl : torch::nn::Module {
  LinearStagesImpl() {
    torch::manual_seed(1);
    for (int i = 0; i < 3; ++i)
      layers.push_back(register_module("h" + std::to_string(i), Stage<Linear>(kWidth, kWidth)));
  }
  torch::Tensor forward(torch::Tensor x) {
    for (auto &layer : layers)
      x = torch::tanh(layer->forward(x));
    return x;
  }
  void freezeFirst(bool frozen) {
    for (auto &parameter : layers[0]->parameters())
      parameter.set_requires_grad(!frozen);
  }
  std::vector<Stage<Linear>> layers;
};
TORCH_MODULE(LinearStages);

ShardedOptions ofStage(int stage, int64_t bucketBytes = int64_t(25) << 20) {
  ShardedOptions options;
  options.stage = stage;
  options.bucket_bytes = bucketBytes;
  return options;
}

} // namespace

RANK_WORKER(passes_caught_exception) {
  auto all = init_distributed();
  const auto input = torch::ones({2, kWidth});
  TwoWays net;
  ShardedDataParallel<TwoWays> model(net, all, ofStage(2));
  const auto held = model.bytes_held();
  auto failing = model.forward(input).sum(), next = model.forward(input).sum();
  Gate::closed = true;
  MUST_THROW(failing.backward(), std::runtime_error, "the gate is closed");
  Gate::closed = false;
  MUST(model.bytes_held() == held);
  next.backward(); // without a forward pass between
  const double whole = model.grad_norm();
  TwoWays reference;
  reference->forward(input).sum().backward();
  MUST(close(whole, normOf(*reference)));

  dropGradients(model.optimizer_parameters());
  failing = model.forward(100 * input).sum();
  Gate::closed = true;
  MUST_THROW(failing.backward(), std::runtime_error, "the gate is closed");
  Gate::closed = false;
  model.begin_forward();
  net->late->forward(input).sum().backward();
  MUST(close(model.grad_norm(), whole / std::sqrt(2.0)));
}

TEST(ShardedPasses, GoOnAfterCaughtExceptions) { ranks::runAll({"passes_caught_exception", 2}); }

RANK_WORKER(passes_frozen_later) {
  auto all = init_distributed();
  const auto input = torch::ones({2, kWidth});
  for (const int stage : {2, 3}) {
    LinearStages net, reference;
    ShardedDataParallel<LinearStages> model(net, all, ofStage(stage, 1));
    const auto options = torch::optim::AdamWOptions(0.1).weight_decay(0.5);
    torch::optim::AdamW one(reference->parameters(), options), many(model.optimizer_parameters(), options);
    for (int step = 0; step < 6; ++step) {
      for (auto *each : {&net, &reference})
        (*each)->freezeFirst(step == 2 || step == 3);
      dropGradients(model.optimizer_parameters());
      dropGradients(reference->parameters());
      model.forward(input).sum().backward();
      reference->forward(input).sum().backward();
      MUST(close(model.grad_norm(), normOf(*reference)));
      many.step();
      one.step();
    }
    torch::NoGradGuard noGrad;
    MUST(distance({model.forward(input)}, {reference->forward(input)}) < 1e-5);
  }
}

RANK_WORKER(passes_frozen_in_part) {
  auto all = init_distributed();
  const auto input = torch::ones({2, kWidth});
  LinearStages net;
  {
    ShardedDataParallel<LinearStages> model(net, all, ofStage(2));
    net->freezeFirst(true);
    MUST_THROW(model.forward(input), UsageError, "keep them apart with ShardedOptions::group");
    net->freezeFirst(false);
    model.forward(input).sum().backward();
  }
  ShardedDataParallel<LinearStages> model(net, all, ofStage(3));
  auto early = model.forward(input).sum();
  net->freezeFirst(true);
  model.forward(input);
  MUST_THROW(early.backward(), UsageError, "was frozen in the last forward pass, but gets a gradient");
  model.forward(input).sum().backward();
}

TEST(ShardedPasses, FrozenLater) {
  ranks::runAll({"passes_frozen_later", 2});
  ranks::runAll({"passes_frozen_in_part", 2});
}

RANK_WORKER(passes_without_wrapper) {
  auto all = init_distributed();
  torch::Tensor output;
  {
    Sharded model(detachedNet(), all);
    output = model.forward(torch::ones({2, kWidth}));
  }
  MUST_THROW(output.sum().backward(), UsageError, "was destroyed before backward()");
}

TEST(ShardedPasses, BackwardNeedsTheWrapper) { ranks::runAll({"passes_without_wrapper", 2}); }

RANK_WORKER(passes_sparse_gradient) {
  auto all = init_distributed();
  Sharded model(Sequential(torch::nn::Embedding(torch::nn::EmbeddingOptions(8, 4).sparse(true))), all);
  MUST_THROW(model.forward(torch::zeros({2}, torch::kLong)).sum().backward(), UsageError,
             "that of parameter 0.weight is sparse");
}

TEST(ShardedPasses, SparseGradientsAreRefused) { ranks::runAll({"passes_sparse_gradient", 2}); }
