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
