// What programs use of LibTorch beyond operators, on four virtual GPUs.
#include "TestSupport.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>

using namespace support;
namespace nn = torch::nn;

namespace {

std::vector<torch::Device> allDevices() {
  std::vector<torch::Device> devices;
  for (size_t i = 0; i < torch::cuda::device_count(); ++i)
    devices.emplace_back(torch::kCUDA, static_cast<torch::DeviceIndex>(i));
  return devices;
}

TEST(Features, EveryOptimizerTrainsOnEveryDevice) {
  using namespace torch::optim;
  for (torch::Device device : allDevices()) {
    torch::manual_seed(11);
    auto input = torch::randn({32, 4}, on(device)), target = input.sum(1, true) * 2 + 1;
    auto trains = [&](auto make) {
      nn::Linear model(4, 1);
      model->to(device);
      auto optimizer = make(model->parameters());
      auto closure = [&] {
        optimizer->zero_grad();
        auto loss = torch::mse_loss(model(input), target);
        loss.backward();
        return loss;
      };
      float first = closure().template item<float>();
      for (int step = 0; step < 25; ++step)
        optimizer->step(closure);
      return closure().template item<float>() < first / 2;
    };
    EXPECT_TRUE(trains([](auto p) { return std::make_unique<SGD>(p, SGDOptions(0.05).momentum(0.5)); }));
    EXPECT_TRUE(trains([](auto p) { return std::make_unique<Adam>(p, AdamOptions(0.2).amsgrad(true)); }));
    EXPECT_TRUE(trains([](auto p) { return std::make_unique<AdamW>(p, AdamWOptions(0.2)); }));
    EXPECT_TRUE(trains([](auto p) {
      return std::make_unique<RMSprop>(p, RMSpropOptions(0.05).momentum(0.5).centered(true));
    }));
    EXPECT_TRUE(trains([](auto p) { return std::make_unique<Adagrad>(p, AdagradOptions(0.5)); }));
    EXPECT_TRUE(trains([](auto p) { return std::make_unique<LBFGS>(p, LBFGSOptions(0.5).max_iter(4)); }));
  }
}

TEST(Features, OptimizerStateIsSavedAndLoaded) {
  auto weight = torch::ones({3}, leafOn(gpu1));
  torch::optim::Adam optimizer({weight}, 0.1);
  weight.square().sum().backward();
  optimizer.step();
  std::stringstream file;
  torch::save(optimizer, file);
  auto copyWeight = torch::ones({3}, leafOn(gpu1));
  torch::optim::Adam copy({copyWeight}, 0.1);
  torch::load(copy, file);
  EXPECT_EQ(copy.state().size(), 1u);
  copyWeight.square().sum().backward();
  copy.step();
  EXPECT_EQ(copyWeight.device(), gpu1);
}

TEST(Features, TensorsKeepTheirDeviceInFiles) {
  torch::Device gpu3("cuda:3");
  std::stringstream file;
  torch::save(std::vector<torch::Tensor>{torch::arange(3, on(gpu3)), torch::ones({2})}, file);
  std::vector<torch::Tensor> loaded;
  torch::load(loaded, file);
  EXPECT_EQ(loaded[0].device(), gpu3);
  EXPECT_EQ(loaded[1].device(), cpu);
  EXPECT_EQ(loaded[0].sum().item<int64_t>(), 3);
}

TEST(Features, RecurrentModulesRunOnEveryDevice) {
  torch::manual_seed(12);
  auto input = torch::randn({5, 2, 4});
  for (torch::Device device : allDevices()) {
    auto compare = [&](auto module, auto hiddenOf) {
      auto expected = std::get<0>(module->forward(input));
      module->to(device);
      auto leaf = input.to(device).detach().requires_grad_();
      auto result = module->forward(leaf);
      EXPECT_TRUE(torch::allclose(std::get<0>(result).cpu(), expected, 1e-4, 1e-5));
      EXPECT_EQ(hiddenOf(result).device(), device);
      std::get<0>(result).sum().backward();
      EXPECT_EQ(leaf.grad().device(), device);
    };
    auto plain = [](auto &result) { return std::get<1>(result); };
    compare(nn::RNN(nn::RNNOptions(4, 3).num_layers(2).nonlinearity(torch::kReLU)), plain);
    compare(nn::GRU(nn::GRUOptions(4, 3).bidirectional(true)), plain);
    compare(nn::LSTM(nn::LSTMOptions(4, 3).num_layers(2)),
            [](auto &result) { return std::get<0>(std::get<1>(result)); });
    nn::LSTMCell cell(4, 3);
    cell->to(device);
    EXPECT_EQ(std::get<0>(cell(torch::ones({2, 4}, on(device)))).device(), device);
  }
}

TEST(Features, PackedSequencesKeepTheirLengthsOnTheCpu) {
  auto input = torch::randn({3, 2, 4}, on(gpu1));
  auto lengths = torch::tensor({3, 2});
  auto packed = nn::utils::rnn::pack_padded_sequence(input, lengths);
  EXPECT_EQ(packed.data().device(), gpu1);
  EXPECT_EQ(packed.batch_sizes().device(), cpu);
  nn::LSTM lstm(4, 3);
  lstm->to(gpu1);
  auto output = std::get<0>(lstm->forward_with_packed_input(packed));
  EXPECT_EQ(std::get<0>(nn::utils::rnn::pad_packed_sequence(output)).device(), gpu1);
  EXPECT_NE(thrown([&] { nn::utils::rnn::pack_padded_sequence(input, lengths.to(gpu1)); }), "");
}

TEST(Features, BatchNormUpdatesItsStatistics) {
  torch::manual_seed(13);
  auto input = torch::randn({8, 3, 4, 4});
  nn::BatchNorm2d onCpu(3), onGpu(3);
  onGpu->to(gpu1);
  auto expected = onCpu(input), result = onGpu(input.to(gpu1));
  EXPECT_TRUE(torch::allclose(result.cpu(), expected, 1e-4, 1e-5));
  EXPECT_TRUE(torch::allclose(onGpu->running_mean.cpu(), onCpu->running_mean, 1e-4, 1e-6));
  EXPECT_EQ(onGpu->num_batches_tracked.item<int64_t>(), 1);
  EXPECT_NE(thrown([&] { onGpu(input); }), "");
}

// One autograd thread per device works on its part of the graph.
TEST(Features, BackwardRunsOnAThreadPerDevice) {
  auto hooks = std::make_shared<std::map<int, std::set<std::thread::id>>>();
  auto mutex = std::make_shared<std::mutex>();
  std::vector<torch::Tensor> leaves;
  torch::Tensor total = torch::zeros({}, on(gpu0));
  for (torch::Device device : allDevices()) {
    leaves.push_back(torch::ones({50, 50}, leafOn(device)));
    auto part = leaves.back().matmul(leaves.back()).relu();
    part.register_hook([=](torch::Tensor gradient) {
      std::lock_guard<std::mutex> lock(*mutex);
      (*hooks)[gradient.device().index()].insert(std::this_thread::get_id());
    });
    total = total + part.sum().to(gpu0);
  }
  for (int round = 0; round < 20; ++round)
    total.backward({}, /*retain_graph=*/true);
  std::set<std::thread::id> threads;
  for (auto &[device, ids] : *hooks) {
    EXPECT_EQ(ids.size(), 1u) << "cuda:" << device;
    threads.insert(ids.begin(), ids.end());
  }
  EXPECT_EQ(threads.size(), 4u);
  for (const torch::Tensor &leaf : leaves)
    EXPECT_EQ(leaf.grad().device(), leaf.device());
}

TEST(Features, ThreadsTrainOnTheirOwnDevices) {
  std::vector<std::thread> threads;
  std::vector<float> losses(4, 1e9f);
  for (torch::Device device : allDevices())
    threads.emplace_back([device, &losses] {
      auto weight = torch::full({8}, 3.0, leafOn(device));
      torch::optim::SGD optimizer({weight}, 0.1);
      for (int step = 0; step < 50; ++step) {
        optimizer.zero_grad();
        auto loss = weight.square().sum();
        loss.backward();
        optimizer.step();
        losses[static_cast<size_t>(device.index())] = loss.item<float>();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  for (float loss : losses)
    EXPECT_LT(loss, 1e-3f);
}

TEST(Features, SeedsReachEveryDevice) {
  auto numbers = [] {
    std::vector<torch::Tensor> all;
    for (torch::Device device : allDevices())
      all.push_back(torch::rand({4}, on(device)));
    return all;
  };
  torch::cuda::manual_seed_all(5);
  auto first = numbers(), second = numbers();
  torch::cuda::manual_seed_all(5);
  auto again = numbers();
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_TRUE(first[i].equal(again[i]));
    EXPECT_FALSE(first[i].equal(second[i]));
  }
  // Generators have a state that can be kept.
  auto generator = at::globalContext().defaultGenerator(gpu1);
  auto state = generator.get_state();
  auto value = torch::rand({3}, on(gpu1));
  generator.set_state(state);
  EXPECT_TRUE(torch::rand({3}, on(gpu1)).equal(value));
}

TEST(Features, GeneratorsOfGpusAreNotForCpuTensors) {
  auto generator = at::globalContext().defaultGenerator(gpu1);
  const std::string text = "Expected a 'cpu' device type for generator but found 'cuda'";
  EXPECT_EQ(thrown([&] { torch::empty({2}).uniform_(0, 1, generator); }), text);
  EXPECT_EQ(thrown([&] { torch::bernoulli(torch::ones({3}), generator); }), text);
  EXPECT_EQ(torch::empty({2}, on(gpu1)).uniform_(0, 1, generator).device(), gpu1);
  EXPECT_EQ(torch::randperm(3, generator, on(gpu1)).device(), gpu1);
}

TEST(Features, DropoutDrawsFromItsDevice) {
  auto x = torch::ones({64}, on(gpu1));
  auto generator = at::globalContext().defaultGenerator(gpu1);
  torch::manual_seed(6); // of the CPU and of all GPUs
  auto state = generator.get_state();
  auto expected = torch::rand({3});
  torch::manual_seed(6);
  auto first = torch::dropout(x, 0.5, true);
  EXPECT_TRUE(torch::rand({3}).equal(expected)) << "the CPU's generator was used";
  auto second = torch::dropout(x, 0.5, true);
  generator.set_state(state);
  EXPECT_TRUE(torch::dropout(x, 0.5, true).equal(first));
  EXPECT_FALSE(second.equal(first));

  torch::nn::LSTM lstm(torch::nn::LSTMOptions(4, 4).num_layers(2).dropout(0.5));
  lstm->to(gpu1);
  auto sequence = torch::ones({5, 2, 4}, on(gpu1));
  torch::cuda::manual_seed_all(8);
  auto once = std::get<0>(lstm(sequence));
  torch::cuda::manual_seed_all(8);
  EXPECT_TRUE(std::get<0>(lstm(sequence)).equal(once));
}

TEST(Features, DropoutKeepsScalesAndPassesGradients) {
  for (auto type : {torch::kFloat, torch::kHalf}) {
    auto x = torch::ones({2000}, on(gpu0).dtype(type)).requires_grad_();
    auto [y, mask] = torch::native_dropout(x, 0.75, true);
    EXPECT_EQ(mask.scalar_type(), torch::kBool);
    EXPECT_TRUE(y.detach().equal(mask.to(type) * 4));
    EXPECT_NEAR(mask.sum().item<int64_t>(), 500, 100);
    y.sum().backward();
    EXPECT_TRUE(x.grad().equal(mask.to(type) * 4));
  }
  auto x = torch::full({3}, 2, on(gpu0).dtype(torch::kFloat));
  for (auto train : {c10::optional<bool>(false), c10::optional<bool>()})
    EXPECT_TRUE(std::get<0>(torch::native_dropout(x, 0, train)).equal(x));
  EXPECT_TRUE(std::get<1>(torch::native_dropout(x, 0.5, false)).all().item<bool>());
  EXPECT_TRUE(std::get<0>(torch::native_dropout(x, 1, c10::nullopt)).equal(torch::zeros({3}, on(gpu0))));
  EXPECT_EQ(std::get<0>(torch::native_dropout(x.narrow(0, 0, 0), 0.5, true)).numel(), 0);
}

TEST(Features, WindowsAreMadeOnTheDevice) {
  auto window = torch::kaiser_window(8, on(gpu1));
  EXPECT_EQ(window.device(), gpu1);
  EXPECT_TRUE(torch::allclose(window.cpu(), torch::kaiser_window(8)));
  EXPECT_EQ(torch::kaiser_window(8, false, 2.5, on(gpu1)).device(), gpu1);
}

TEST(Features, SparseGradientsTrain) {
  auto train = [](torch::Device device, auto module, auto makeOptimizer) {
    torch::NoGradGuard guard;
    module->weight.fill_(1);
    torch::AutoGradMode gradients(true);
    module->to(device);
    auto optimizer = makeOptimizer(module->parameters());
    for (int step = 0; step < 3; ++step) {
      module(torch::tensor({{1, 2}, {2, 5}}, on(device))).square().sum().backward();
      optimizer->step();
      optimizer->zero_grad();
    }
    return module->weight.detach().cpu();
  };
  auto compare = [&](auto makeModule, auto makeOptimizer) {
    auto expected = train(cpu, makeModule(), makeOptimizer);
    EXPECT_TRUE(torch::allclose(train(gpu1, makeModule(), makeOptimizer), expected, 1e-4, 1e-5));
  };
  auto embedding = [] { return nn::Embedding(nn::EmbeddingOptions(10, 3).sparse(true)); };
  auto bag = [] { return nn::EmbeddingBag(nn::EmbeddingBagOptions(10, 3).sparse(true).mode(torch::kSum)); };
  auto sgd = [](auto p) { return std::make_unique<torch::optim::SGD>(p, torch::optim::SGDOptions(0.1)); };
  auto adagrad = [](auto p) { return std::make_unique<torch::optim::Adagrad>(p); };
  compare(embedding, sgd);
  compare(embedding, adagrad);
  compare(bag, sgd);
  auto sparse = torch::eye(3, on(gpu0)).to_sparse();
  sparse.zero_();
  sparse.add_(torch::eye(3, on(gpu0)).to_sparse());
  EXPECT_EQ(sparse.to_dense().sum().item<float>(), 3);
}

TEST(Features, PinnedBatchesFromTheLoaderMove) {
  auto data = torch::data::datasets::TensorDataset(torch::arange(12).view({12, 1}))
                  .map(torch::data::transforms::Stack<torch::data::TensorExample>());
  auto loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(std::move(data), 4);
  int64_t sum = 0;
  for (auto &batch : *loader) {
    auto pinned = batch.data.pin_memory();
    EXPECT_TRUE(pinned.is_pinned());
    sum += pinned.to(gpu1, /*non_blocking=*/true).sum().item<int64_t>();
  }
  EXPECT_EQ(sum, 66);
}

TEST(Features, ModulesAreClonedToDevices) {
  nn::Sequential net(nn::Linear(3, 4), nn::BatchNorm1d(4), nn::Linear(4, 2));
  for (torch::Device device : allDevices()) {
    auto copy = std::dynamic_pointer_cast<nn::SequentialImpl>(net->clone(device));
    for (const torch::Tensor &tensor : copy->parameters())
      EXPECT_EQ(tensor.device(), device);
    for (const torch::Tensor &buffer : copy->buffers())
      EXPECT_EQ(buffer.device(), device);
    EXPECT_EQ(copy->forward(torch::ones({5, 3}, on(device))).device(), device);
  }
  EXPECT_EQ(net->parameters()[0].device(), cpu);
}

TEST(Features, AttentionComputesWhatTheCpuComputes) {
  torch::manual_seed(14);
  nn::MultiheadAttention attention(8, 2);
  auto input = torch::randn({5, 2, 8});
  auto expected = std::get<0>(attention(input, input, input));
  attention->to(gpu1);
  auto leaf = input.to(gpu1).requires_grad_();
  auto result = std::get<0>(attention(leaf, leaf, leaf));
  EXPECT_TRUE(torch::allclose(result.cpu(), expected, 1e-4, 1e-5));
  result.sum().backward();
  EXPECT_EQ(leaf.grad().device(), gpu1);
  EXPECT_NE(thrown([&] { attention(leaf, input, leaf); }), "");
#if TORCH_VERSION_MAJOR > 1
  auto query = torch::randn({1, 2, 4, 8}, leafOn(gpu1));
  auto scaled = torch::scaled_dot_product_attention(query, query, query);
  scaled.sum().backward();
  EXPECT_EQ(query.grad().device(), gpu1);
  EXPECT_NE(thrown([&] { torch::scaled_dot_product_attention(query, query.to(gpu0), query); }), "");
#endif
}

TEST(Features, EventsOrderAndMeasure) {
  c10::impl::VirtualGuardImpl impl(torch::kCUDA);
  void *start = nullptr, *end = nullptr;
  auto stream = impl.getDefaultStream(gpu0);
  impl.record(&start, stream, 0, c10::EventFlag::PYTORCH_DEFAULT);
  impl.record(&end, stream, 0, c10::EventFlag::PYTORCH_DEFAULT);
  EXPECT_TRUE(impl.queryEvent(end));
  impl.block(start, impl.getStreamFromGlobalPool(gpu1));
  EXPECT_EQ(thrown([&] { impl.record(&end, stream, 1, c10::EventFlag::PYTORCH_DEFAULT); }),
            "Event device index 1 does not match recording stream's device index 0.");
  impl.destroyEvent(start, 0);
  impl.destroyEvent(end, 0);
}

} // namespace
