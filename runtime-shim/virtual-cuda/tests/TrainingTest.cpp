// Whole models: what they compute on a virtual device is what they compute on the CPU.
#include "TestSupport.h"

#include <sstream>

using namespace support;
namespace nn = torch::nn;

namespace {

struct TextNetImpl : nn::Module {
  TextNetImpl() {
    embedding = register_module("embedding", nn::Embedding(20, 8));
    convolution = register_module("convolution", nn::Conv1d(nn::Conv1dOptions(8, 8, 3).padding(1)));
    norm = register_module("norm", nn::BatchNorm1d(8));
    lstm = register_module("lstm", nn::LSTM(nn::LSTMOptions(8, 6).batch_first(true).bidirectional(true)));
    gru = register_module("gru", nn::GRU(nn::GRUOptions(12, 8).batch_first(true).num_layers(2)));
    head = register_module("head", nn::Linear(8, 5));
    dropout = register_module("dropout", nn::Dropout(0.1));
  }

  torch::Tensor forward(torch::Tensor tokens) {
    auto x = embedding(tokens).transpose(1, 2);
    x = torch::relu(norm(convolution(x))).transpose(1, 2);
    x = std::get<0>(gru(std::get<0>(lstm(x))));
    return head(dropout(x.mean(1)));
  }

  nn::Embedding embedding{nullptr};
  nn::Conv1d convolution{nullptr};
  nn::BatchNorm1d norm{nullptr};
  nn::LSTM lstm{nullptr};
  nn::GRU gru{nullptr};
  nn::Linear head{nullptr};
  nn::Dropout dropout{nullptr};
};
TORCH_MODULE(TextNet);

// Runs forward and backward of a module on the CPU and, with the same weights, on a virtual device.
template <typename Module> void expectSameAsCpu(Module module, torch::Tensor input) {
  module->eval();
  auto onCpu = module->forward(input);
  onCpu.sum().backward();
  std::vector<torch::Tensor> gradients;
  for (auto &parameter : module->parameters())
    gradients.push_back(parameter.grad().clone());
  module->zero_grad();
  for (auto &parameter : module->parameters())
    parameter.mutable_grad().reset();
  module->to(gpu1);
  auto onGpu = module->forward(input.to(gpu1));
  EXPECT_EQ(onGpu.device(), gpu1);
  EXPECT_TRUE(torch::allclose(onGpu.cpu(), onCpu, 1e-4, 1e-5));
  onGpu.sum().backward();
  auto parameters = module->parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    ASSERT_EQ(parameters[i].grad().device(), gpu1);
    EXPECT_TRUE(torch::allclose(parameters[i].grad().cpu(), gradients[i], 1e-3, 1e-4)) << "parameter " << i;
  }
}

TEST(Training, TextNetComputesWhatTheCpuComputes) {
  torch::manual_seed(1);
  expectSameAsCpu(TextNet(), torch::randint(0, 20, {4, 6}, torch::kLong));
}

TEST(Training, ConvolutionsComputeWhatTheCpuComputes) {
  torch::manual_seed(2);
  auto image = torch::randn({2, 4, 9, 9});
  expectSameAsCpu(nn::Conv2d(nn::Conv2dOptions(4, 6, 3).stride(2).padding(1)), image);
  expectSameAsCpu(nn::Conv2d(nn::Conv2dOptions(4, 4, 3).groups(4)), image);
  expectSameAsCpu(nn::Conv2d(nn::Conv2dOptions(4, 4, 3).dilation(2).bias(false)), image);
  expectSameAsCpu(nn::ConvTranspose2d(4, 3, 3), image);
  expectSameAsCpu(nn::Conv3d(2, 3, 3), torch::randn({1, 2, 5, 5, 5}));
  expectSameAsCpu(nn::Conv3d(nn::Conv3dOptions(2, 2, 3).groups(2)), torch::randn({1, 2, 5, 5, 5}));
}

TEST(Training, OtherLayersComputeWhatTheCpuComputes) {
  torch::manual_seed(3);
  expectSameAsCpu(nn::LayerNorm(nn::LayerNormOptions({8})), torch::randn({4, 8}));
  expectSameAsCpu(nn::GroupNorm(2, 4), torch::randn({2, 4, 3, 3}));
  expectSameAsCpu(nn::BatchNorm2d(4), torch::randn({2, 4, 3, 3}));
  expectSameAsCpu(nn::Linear(3, 2), torch::randn({5, 4, 3}));
  expectSameAsCpu(nn::PReLU(), torch::randn({5, 3}));
}

TEST(Training, TrainsSavesAndLoads) {
  torch::manual_seed(4);
  TextNet net;
  net->to(gpu0);
  auto tokens = torch::randint(0, 20, {16, 6}, torch::kLong).to(gpu0);
  auto labels = torch::randint(0, 5, {16}, torch::kLong).to(gpu0);
  torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(1e-2));
  double first = 0, last = 0;
  for (int step = 0; step < 60; ++step) {
    optimizer.zero_grad();
    auto loss = nn::functional::cross_entropy(net(tokens), labels);
    loss.backward();
    nn::utils::clip_grad_norm_(net->parameters(), 1.0);
    optimizer.step();
    last = loss.item<double>();
    first = step == 0 ? last : first;
  }
  EXPECT_LT(last, first / 2);

  std::stringstream file;
  torch::save(net, file);
  TextNet copy;
  torch::load(copy, file, gpu1);
  EXPECT_EQ(copy->parameters()[0].device(), gpu1);
  net->eval();
  copy->eval();
  EXPECT_TRUE(torch::allclose(net(tokens).cpu(), copy(tokens.to(gpu1)).cpu()));
}

TEST(Training, OptimizersStepOnTheDevice) {
  auto decreases = [](auto make) {
    auto weight = torch::full({3}, 2.0, leafOn(gpu1));
    auto optimizer = make(std::vector<torch::Tensor>{weight});
    for (int step = 0; step < 20; ++step) {
      optimizer->zero_grad();
      weight.square().sum().backward();
      optimizer->step();
    }
    return weight.device() == gpu1 && weight.abs().max().template item<float>() < 2;
  };
  using namespace torch::optim;
  EXPECT_TRUE(decreases([](auto p) { return std::make_unique<SGD>(p, SGDOptions(0.05).momentum(0.9)); }));
  EXPECT_TRUE(decreases([](auto p) { return std::make_unique<AdamW>(p, AdamWOptions(0.05)); }));
  EXPECT_TRUE(decreases([](auto p) { return std::make_unique<RMSprop>(p, RMSpropOptions(0.05)); }));
  EXPECT_TRUE(decreases([](auto p) { return std::make_unique<Adagrad>(p, AdagradOptions(0.05)); }));
}

TEST(Training, BackwardCrossesDevices) {
  auto a = torch::ones({2, 3}, leafOn(gpu0));
  auto w = torch::ones({3, 3}, leafOn(gpu1));
  auto shared = torch::ones({3}, leafOn(cpu));
  auto hidden = a.to(gpu1).matmul(w) + shared.to(gpu1);
  auto loss = (hidden.to(cpu) * shared).sum() + hidden.to(torch::Device("cuda:3")).sum().cpu();
  loss.backward();
  EXPECT_EQ(a.grad().device(), gpu0);
  EXPECT_EQ(w.grad().device(), gpu1);
  EXPECT_EQ(shared.grad().device(), cpu);
  EXPECT_EQ(a.grad().sum().item<float>(), 36);
}

TEST(Training, AttentionRuns) {
  torch::manual_seed(5);
  nn::TransformerEncoderLayer layer(nn::TransformerEncoderLayerOptions(8, 2).dropout(0.1));
  layer->to(gpu1);
  auto input = torch::randn({4, 2, 8}, leafOn(gpu1));
  layer(input).sum().backward();
  EXPECT_EQ(input.grad().device(), gpu1);
}

TEST(Training, DataLoaderBatchesMove) {
  struct Numbers : torch::data::Dataset<Numbers> {
    torch::data::Example<> get(size_t index) override {
      return {torch::full({2}, static_cast<double>(index)), torch::tensor(static_cast<int64_t>(index))};
    }
    torch::optional<size_t> size() const override { return 10; }
  };
  auto loader = torch::data::make_data_loader(Numbers().map(torch::data::transforms::Stack<>()),
                                              torch::data::DataLoaderOptions(4).workers(2));
  double sum = 0;
  for (auto &batch : *loader)
    sum += batch.data.to(gpu0).sum().item<double>();
  EXPECT_EQ(sum, 90);
}

TEST(Training, GradientOfAnotherDeviceIsRejected) {
  auto weight = torch::ones({2}, leafOn(gpu0));
  weight.sum().backward();
  weight.set_data(weight.data().to(gpu1));
  std::string text = thrown([&] { weight.sum().backward(); });
  EXPECT_EQ(text.rfind("Expected all tensors to be on the same device", 0), 0u) << text;
}

} // namespace
