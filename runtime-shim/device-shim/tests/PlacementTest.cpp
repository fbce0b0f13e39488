// A model over several devices, and the helpers for tensors that are on them.
#include "Training.h"

#include "dispatch/BalancedSplit.h"

#include <device_shim/CheckSameDevice.h>
#include <device_shim/CheckedMode.h>
#include <device_shim/ClipGradNorm.h>
#include <device_shim/DispatchModel.h>
#include <device_shim/Distributed.h>
#include <device_shim/DistributedDataParallel.h>
#include <device_shim/Error.h>
#include <device_shim/GradScaler.h>
#include <device_shim/ShardedDataParallel.h>

#include <limits>

using namespace device_shim;
using namespace training;

namespace {

const torch::Device kFirst(torch::kCUDA, 0), kSecond(torch::kCUDA, 1);

struct BlocksImpl : torch::nn::Module {
  BlocksImpl() {
    torch::manual_seed(1);
    first = register_module("first", Stage<torch::nn::Linear>(kWidth, 16));
    rnn = register_module("rnn", Stage<torch::nn::LSTM>(torch::nn::LSTMOptions(16, 16).batch_first(true)));
    last = register_module("last", Stage<torch::nn::Linear>(16, kClasses));
  }
  torch::Tensor forward(const torch::Tensor &x) {
    auto [output, state] = rnn->forward(torch::tanh(first->forward(x)).unsqueeze(1));
    return last->forward(output.squeeze(1) + std::get<0>(state).squeeze(0));
  }
  Stage<torch::nn::Linear> first{nullptr};
  Stage<torch::nn::LSTM> rnn{nullptr};
  Stage<torch::nn::Linear> last{nullptr};
};
TORCH_MODULE(Blocks);

torch::nn::Sequential chainOf(int layers) {
  torch::nn::Sequential chain;
  for (int i = 0; i < layers; ++i)
    chain->push_back(torch::nn::Linear(kWidth, kWidth));
  return chain;
}

// One worker process per test, since only there the virtual GPUs are.
void onVirtualGpus(const char *worker, int gpus, int count = 1) {
  if (!ranks::haveVirtualGpus())
    GTEST_SKIP() << "no library of virtual GPUs";
  ranks::runAll({worker, count, gpus});
}

} // namespace

TEST(BalancedSplit, MakesTheHeaviestPartLight) {
  using Parts = std::vector<size_t>;
  const int64_t no = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(device_shim::detail::balancedSplit({1, 1, 1, 1}, {no, no}), (Parts{0, 0, 1, 1}));
  EXPECT_EQ(device_shim::detail::balancedSplit({9, 1, 1, 1}, {no, no}), (Parts{0, 1, 1, 1}));
  EXPECT_EQ(device_shim::detail::balancedSplit({1, 1, 9}, {no, no, no}), (Parts{0, 0, 1}));
  EXPECT_EQ(device_shim::detail::balancedSplit({4, 4, 4}, {4, no}), (Parts{0, 1, 1}));
  EXPECT_EQ(device_shim::detail::balancedSplit({4, 4, 4}, {4, 4}), Parts{});
  EXPECT_EQ(device_shim::detail::balancedSplit({5, 1}, {2, no}), (Parts{1, 1}));
}

RANK_WORKER(dispatch_trains) {
  auto reference = Blocks(), net = Blocks();
  torch::optim::Adam before(net->parameters(), 1e-2); // parameters keep their identity
  auto model = dispatch_model(net, DeviceMap({{"first", kFirst}, {"", kSecond}}));
  MUST(model.output_device() == kSecond && model.input_device() == kFirst);
  MUST(net->first->module->weight.device() == kFirst && net->last->module->weight.device() == kSecond);
  torch::optim::Adam plain(reference->parameters(), 1e-2);
  for (int step = 0; step < 10; ++step) {
    const auto batch = batchOf(step, 16);
    plain.zero_grad();
    loss(reference->forward(batch.input), batch).backward();
    plain.step();
    before.zero_grad();
    auto logits = model.forward(batch.input); // from the CPU
    MUST(logits.device() == model.output_device());
    loss(logits, batch.to(model.output_device())).backward();
    clip_grad_norm_(net->parameters(), 1e9);
    before.step();
  }
  MUST(distance(net->parameters(), reference->parameters()) < 1e-5);
}

TEST(Dispatch, TrainsWithTheLossOnTheLastDevice) { onVirtualGpus("dispatch_trains", 2); }

RANK_WORKER(dispatch_automatic) {
  auto net = chainOf(8);
  auto model = dispatch_model(net, "auto");
  const auto &map = model.device_map();
  for (int i = 0; i < 8; ++i)
    MUST(map.at(std::to_string(i)) == torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(i / 2)));
  MUST(model.forward(torch::ones({2, kWidth})).device() == torch::Device(torch::kCUDA, 3));
}

RANK_WORKER(dispatch_refuses) {
  MUST_THROW(dispatch_model(Net()), UsageError, "This model has no stage");
  MUST_THROW(dispatch_model(chainOf(2), "everywhere"), UsageError, "device_map 'everywhere' is unknown");
  MUST_THROW(dispatch_model(chainOf(2), DeviceMap({{"0", kFirst}})), UsageError, "no entry for stage '1'");
  MUST_THROW(dispatch_model(chainOf(2), DeviceMap({{"", kFirst}, {"7", kFirst}})), UsageError,
             "no such stage");
  MUST_THROW(dispatch_model(chainOf(2), DeviceMap({{"", torch::Device(torch::kCUDA, 9)}})), UsageError,
             "put stage '0' on cuda:9, but this process sees 4 GPUs");
  DispatchOptions options;
  options.devices = {kFirst, torch::Device(torch::kCUDA, 9)};
  MUST_THROW(dispatch_model(chainOf(2), "auto", options), UsageError,
             "DispatchOptions::devices put stage '1' on cuda:9, but this process sees 4 GPUs");
  options.devices = {kFirst};
  MUST_THROW(dispatch_model(chainOf(2), DeviceMap({{"", kFirst}}), options), UsageError,
             "are for device_map \"auto\"");
  options.devices = {};
  options.max_bytes = {10, 10, 10, 10};
  MUST_THROW(dispatch_model(chainOf(2), "auto", options), UsageError, "does not fit");
  torch::nn::Linear twice(kWidth, kWidth);
  torch::nn::Sequential shared(twice, twice);
  MUST_THROW(dispatch_model(shared, DeviceMap({{"0", kFirst}, {"1", kSecond}})), UsageError,
             "share a parameter");
  auto together = dispatch_model(shared, "auto");
  MUST(together.device_map().at("1") == together.device_map().at("0"));
}

TEST(Dispatch, Automatic) { onVirtualGpus("dispatch_automatic", 4); }
TEST(Dispatch, Refuses) { onVirtualGpus("dispatch_refuses", 4); }

namespace {

// Adds the sums of its parameters, which others may hold too.
struct HolderImpl : torch::nn::Module {
  explicit HolderImpl(const std::vector<torch::Tensor> &held) {
    for (const auto &parameter : held)
      register_parameter("p" + std::to_string(parameters().size()), parameter);
  }
  torch::Tensor forward(torch::Tensor x) {
    for (const auto &parameter : parameters(false))
      x = x + parameter.sum();
    return x;
  }
};
TORCH_MODULE(Holder);

torch::Tensor floats(int64_t count) { return torch::ones({count}, torch::requires_grad()); }

// The optional state that a recurrent layer takes, in this LibTorch.
template <typename Impl, typename Result, typename Input, typename State>
State stateOf(Result (Impl::*)(Input, State));
using LstmState = decltype(stateOf(&torch::nn::LSTMImpl::forward));

// A state made on another device, as an optional argument.
struct TwoRecurrentImpl : torch::nn::Module {
  TwoRecurrentImpl() {
    for (const auto *name : {"a", "b"})
      stages.push_back(register_module(name, Stage<torch::nn::LSTM>(torch::nn::LSTMOptions(4, 4))));
  }
  torch::Tensor forward(const torch::Tensor &x) {
    const auto [output, state] = stages[0]->forward(x);
    return std::get<0>(stages[1]->forward(output, LstmState(state)));
  }
  std::vector<Stage<torch::nn::LSTM>> stages;
};
TORCH_MODULE(TwoRecurrent);

struct TenfoldImpl : torch::nn::SequentialImpl {
  using torch::nn::SequentialImpl::SequentialImpl;
  torch::Tensor forward(const torch::Tensor &x) { return 10 * torch::nn::SequentialImpl::forward(x); }
};
TORCH_MODULE(Tenfold);

} // namespace

RANK_WORKER(dispatch_shared) {
  const auto p = floats(100), q = floats(100);
  using Held = std::vector<torch::Tensor>;
  DispatchOptions options;
  { // The last stage shares with the third, and that with the first.
    torch::nn::Sequential chained(Holder(Held{p, floats(10)}), Holder(Held{floats(4000)}), Holder(Held{p, q}),
                                  Holder(Held{q, floats(10)}));
    auto model = dispatch_model(chained, "auto");
    MUST(model.device_map().at("1") == kSecond && model.device_map().at("3") == kFirst);
    model.forward(torch::ones({1}));
    MUST_THROW(dispatch_model(chained, "auto"), UsageError,
               "belongs to a wrapper already, of dispatch_model");
  }
  // What the third has besides weighs, too.
  torch::nn::Sequential heavy(Holder(Held{p, floats(10)}), Holder(Held{floats(3000)}),
                              Holder(Held{p, floats(5000)}));
  options.max_bytes = {4 * 4000, 4 * 8200};
  auto limited = dispatch_model(heavy, "auto", options);
  MUST(limited.device_map().at("0") == kSecond && limited.device_map().at("2") == kSecond);
  // Twice the same bytes are counted once.
  options.max_bytes = {4 * 120, 4 * 5000};
  torch::nn::Sequential light(Holder(Held{q, floats(10)}), Holder(Held{q, floats(10)}),
                              Holder(Held{floats(5000)}));
  MUST(dispatch_model(light, "auto", options).device_map().at("1") == kFirst);
}

RANK_WORKER(dispatch_arguments) {
  TwoRecurrent net;
  auto model = dispatch_model(net, DeviceMap({{"a", kFirst}, {"b", kSecond}}));
  MUST(model.forward(torch::ones({2, 3, 4})).device() == kSecond);
  const auto tenfold = [] {
    torch::manual_seed(1);
    return Tenfold(torch::nn::Linear(4, 4));
  };
  MUST_THROW(dispatch_model(tenfold(), "auto"), UsageError, "A class derived from torch::nn::Sequential");
}

// Adds a table that others may have, too.
struct TabledImpl : torch::nn::Module {
  explicit TabledImpl(const torch::Tensor &shared)
      : layer(register_module("layer", torch::nn::Linear(4, 4))), table(register_buffer("table", shared)) {}
  torch::Tensor forward(const torch::Tensor &x) { return layer->forward(x) + table; }
  torch::nn::Linear layer;
  torch::Tensor table;
};
TORCH_MODULE(Tabled);

RANK_WORKER(dispatch_shared_buffers) {
  const auto table = torch::ones({4}), input = torch::ones({2, 4});
  const auto tabled = [&](bool own) {
    torch::nn::Sequential net;
    for (int i = 0; i < 4; ++i)
      net->push_back(Tabled(own ? table.clone() : table));
    return net;
  };
  auto shared = tabled(false);
  MUST_THROW(
      dispatch_model(shared, "auto"), UsageError,
      "stages '0' and '2' share the buffer 'table', but are to be on cuda:0 and cuda:1; give each stage "
      "a copy of its own");
  MUST(shared->parameters()[0].is_cpu()); // nothing has moved
  MUST(dispatch_model(shared, DeviceMap({{"", kSecond}})).forward(input).device() == kSecond);
  MUST(dispatch_model(tabled(true), "auto").forward(input).device() == kSecond);
}

// One stage under two names.
struct TwiceImpl : torch::nn::Module {
  TwiceImpl() {
    first = register_module("encoder", Stage<torch::nn::Linear>(kWidth, kWidth));
    middle = register_module("middle", Stage<torch::nn::Linear>(kWidth, kWidth));
    last = register_module("decoder", first);
  }
  torch::Tensor forward(const torch::Tensor &x) { return last->forward(middle->forward(first->forward(x))); }
  Stage<torch::nn::Linear> first{nullptr}, middle{nullptr}, last{nullptr};
};
TORCH_MODULE(Twice);

RANK_WORKER(dispatch_stage_of_two_names) {
  const auto input = torch::ones({2, kWidth});
  MUST_THROW(
      dispatch_model(Twice(), DeviceMap({{"encoder", kFirst}, {"middle", kFirst}, {"decoder", kSecond}})),
      UsageError, "'encoder' and 'decoder' are one stage, but the device_map puts them on cuda:0 and cuda:1");
  Twice net;
  {
    auto model = dispatch_model(net, "auto");
    MUST(model.device_map().at("decoder") == kFirst && model.device_map().at("middle") == kSecond);
    MUST(model.forward(input).device() == kFirst && model.output_device() == kFirst);
  }
  auto listed =
      dispatch_model(net, DeviceMap({{"encoder", kSecond}, {"middle", kFirst}, {"decoder", kSecond}}));
  MUST(listed.forward(input).device() == kSecond);
}

TEST(Dispatch, SharedBuffersStayTogether) { onVirtualGpus("dispatch_shared_buffers", 2); }
TEST(Dispatch, StagesOfTwoNames) { onVirtualGpus("dispatch_stage_of_two_names", 2); }
TEST(Dispatch, SharedParametersWeighOnce) { onVirtualGpus("dispatch_shared", 2); }
TEST(Dispatch, OptionalArgumentsMove) { onVirtualGpus("dispatch_arguments", 2); }

RANK_WORKER(dispatch_with_ranks) {
  {
    auto model = dispatch_model(chainOf(4), "auto");
    MUST_THROW(init_distributed(), InitError, "cannot be combined with distributed training");
  }
  auto all = init_distributed();
  MUST_THROW(dispatch_model(chainOf(4), "auto"), UsageError,
             "device_map=\"auto\", cannot be combined with distributed training");
  // A map with one device is none, and DistributedDataParallel accepts the result.
  auto net = chainOf(4);
  auto model = dispatch_model(net, DeviceMap({{"", all->device()}}));
  DistributedDataParallel<torch::nn::Sequential> parallel(net, all);
  parallel.forward(torch::ones({2, kWidth}, all->device())).sum().backward();
}

TEST(Dispatch, ExcludesDistributedTraining) { onVirtualGpus("dispatch_with_ranks", 2, 2); }

RANK_WORKER(devices_are_checked) {
  const auto here = torch::ones({2, 3}, kFirst), there = torch::ones({3}, kSecond);
  check_same_device({{"a", here}, {"b", here}, {"none", torch::Tensor()}});
  MUST_THROW(check_same_device("the loss", {{"logits", here}, {"labels", there}}), DeviceError,
             "the loss: the tensors are on different devices: logits on cuda:0 [2, 3], labels on cuda:1 [3]");
  check_on_device("forward", kFirst, {{"a", here}});
  MUST_THROW(check_on_device("forward", kFirst, {{"a", here}, {"b", there}}), DeviceError, "move 'b' there");
  check_on_device("forward", torch::kCUDA, {{"a", here}, {"b", there}});
  MUST_THROW(check_on_device("forward", torch::kCUDA, {{"c", torch::ones({1})}}), DeviceError,
             "cuda is needed, but found c on cpu [1]");

  auto weight = torch::ones({3, 4}, torch::requires_grad());
  MUST_THROW(checked("the projection", [&] { return torch::mm(here, weight); }), DeviceError,
             "the projection: aten::mm got cuda:0 [2, 3], cpu [3, 4]; LibTorch says: Expected all tensors");
  MUST(checked("fine", [&] { return here.sum().item<double>(); }) == 6);
  MUST_THROW(checked("other", []() -> int { throw std::runtime_error("unrelated"); }), std::runtime_error,
             "unrelated");
  CheckedMode mode;
  here.to(kSecond) + there + torch::tensor(2.0);
  MUST(mode.last_mixed_call().empty());
  bool copied = false;
  for (const auto &call : mode.mixed_calls())
    copied = copied || call.copies;
  MUST(copied);
}

TEST(CheckSameDevice, NamesTheTensors) { onVirtualGpus("devices_are_checked", 2); }

RANK_WORKER(gradients_are_clipped) {
  for (const double norm : {1.0, 2.0, 3.0, std::numeric_limits<double>::infinity()}) {
    torch::manual_seed(4);
    auto a = torch::randn({5, 4}), b = torch::randn({7}), c = torch::randn({3}), unused = torch::randn({2});
    std::vector<torch::Tensor> one, many;
    for (const auto &value : {a, b, c, unused}) {
      one.push_back(value.clone().requires_grad_());
      many.push_back(
          value.to(many.size() == 0   ? kFirst
                   : many.size() == 1 ? kSecond
                                      : torch::Device(torch::kCPU))
              .requires_grad_());
    }
    for (size_t i = 0; i < 3; ++i) {
      (one[i].square().sum() * 5).backward();
      (many[i].square().sum() * 5).backward();
    }
    const double expected = torch::nn::utils::clip_grad_norm_(one, 0.7, norm);
    MUST(std::abs(clip_grad_norm_(many, 0.7, norm) - expected) < 1e-4 * expected);
    for (size_t i = 0; i < 3; ++i)
      MUST(distance({one[i].grad()}, {many[i].grad()}) < 1e-5);
    many[1].mutable_grad().fill_(NAN);
    MUST_THROW(clip_grad_norm_(many, 0.7, norm, true), Error, "infinite or not a number");
    MUST(std::isnan(clip_grad_norm_(many, 0.7, norm)));
    for (size_t i = 0; i < 3; ++i) // as LibTorch's
      MUST(many[i].grad().isnan().all().item<bool>());
  }
  for (const double norm : {0.0, -1.0, double(NAN)})
    MUST_THROW(clip_grad_norm_({}, 0.7, norm), UsageError, "a norm_type above 0");
}

TEST(ClipGradNorm, AcrossDevices) { onVirtualGpus("gradients_are_clipped", 2); }

TEST(ClipGradNorm, TiedParametersCountOnce) {
  auto weight = torch::ones({4}, torch::requires_grad());
  const std::vector<torch::Tensor> twice{weight, weight};
  (weight * 2).sum().backward();
  EXPECT_NEAR(clip_grad_norm_(twice, 1.0), 4.0, 1e-5);
  EXPECT_NEAR(weight.grad().norm().item<double>(), 1.0, 1e-5);
}

TEST(ClipGradNorm, SparseGradientsAreRefused) {
  torch::nn::Embedding layer(torch::nn::EmbeddingOptions(8, 4).sparse(true));
  layer->forward(torch::zeros({2}, torch::kLong)).sum().backward();
  EXPECT_THROW(clip_grad_norm_(layer->parameters(), 1.0), UsageError);
  torch::optim::SGD optimizer(layer->parameters(), 0.1);
  EXPECT_THROW(GradScaler().unscale_(optimizer), UsageError);
}

TEST(ClipGradNorm, LimitsAreChecked) {
  auto weight = torch::ones({4}, torch::requires_grad());
  (weight * 2).sum().backward();
  for (const double limit : {-1.0, std::nan("")})
    EXPECT_THROW(clip_grad_norm_({weight}, limit), UsageError);
  EXPECT_TRUE(weight.grad().equal(torch::full({4}, 2.0)));
  EXPECT_NEAR(clip_grad_norm_({weight}, INFINITY), 4.0, 1e-5);
  EXPECT_TRUE(weight.grad().equal(torch::full({4}, 2.0)));
  clip_grad_norm_({weight}, 0);
  EXPECT_TRUE(weight.grad().equal(torch::zeros({4})));
}

// A rank has a part of the gradients, and would clip it by a norm of its own.
RANK_WORKER(partitions_are_not_clipped_alone) {
  auto all = init_distributed();
  for (const int stage : {2, 3}) {
    auto net = chainOf(2);
    ShardedOptions options;
    options.stage = stage;
    ShardedDataParallel<torch::nn::Sequential> model(net, all, options);
    model.forward(torch::ones({2, kWidth})).sum().backward();
    const char *const call = "call its unscale_and_clip_grads(max_norm)";
    MUST_THROW(clip_grad_norm_(model.optimizer_parameters(), 1), UsageError, call);
    MUST_THROW(clip_grad_norm_(net->parameters(), 1), UsageError, call);
    const double norm = model.grad_norm();
    for (const double limit : {-1.0, std::nan("")})
      MUST_THROW(model.unscale_and_clip_grads(limit), UsageError, "needs a max_norm of at least 0");
    MUST(model.grad_norm() == norm);
    MUST(model.unscale_and_clip_grads(INFINITY) == norm);
    MUST(model.grad_norm() == norm);
  }
}

TEST(ClipGradNorm, PartitionsAreRefused) { ranks::runAll({"partitions_are_not_clipped_alone", 2}); }
