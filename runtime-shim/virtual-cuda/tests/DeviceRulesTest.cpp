// Which mixes of devices are accepted, and the text of the others.
#include "TestSupport.h"

using namespace support;
using torch::indexing::Slice;

namespace {

struct DeviceRules : testing::Test {
  torch::Tensor host = torch::ones({3});
  torch::Tensor hostScalar = torch::scalar_tensor(2.0);
  torch::Tensor first = torch::ones({3}, on(gpu0));
  torch::Tensor firstScalar = torch::ones({}, on(gpu0));
  torch::Tensor second = torch::ones({3}, on(gpu1));
  torch::Tensor hostIndex = torch::zeros({1}, torch::kLong);
};

TEST_F(DeviceRules, BinaryOperatorsTakeOneCpuScalar) {
  torch::Tensor sum = first + hostScalar;
  EXPECT_EQ(sum.device(), gpu0);
  EXPECT_EQ(sum.sum().item<float>(), 9);
  EXPECT_EQ((hostScalar * second).device(), gpu1);
  EXPECT_EQ(first.add_(hostScalar).device(), gpu0);
  EXPECT_EQ(torch::maximum(first, hostScalar).device(), gpu0);
  EXPECT_EQ(torch::l1_loss(first, hostScalar).device(), gpu0);
  EXPECT_EQ((first > hostScalar).device(), gpu0);
  EXPECT_EQ((2 - first).device(), gpu0);
}

TEST_F(DeviceRules, BinaryOperatorsRejectOtherMixes) {
  EXPECT_EQ(thrown([&] { first + host; }), kTwoDevices + "cuda:0 and cpu!");
  EXPECT_EQ(thrown([&] { host + first; }), kTwoDevices + "cuda:0 and cpu!");
  EXPECT_EQ(thrown([&] { first + second; }), kTwoDevices + "cuda:0 and cuda:1!");
  EXPECT_EQ(thrown([&] { firstScalar + host; }), kTwoDevices + "cuda:0 and cpu!");
  EXPECT_EQ(thrown([&] { firstScalar + second[0]; }), kTwoDevices + "cuda:0 and cuda:1!");
}

TEST_F(DeviceRules, TheOutputIsNeverTheCpuScalar) {
  EXPECT_EQ(thrown([&] { host.mul_(firstScalar); }), kTwoDevices + "cuda:0 and cpu!");
  EXPECT_EQ(thrown([&] { hostScalar.add_(firstScalar); }), kTwoDevices + "cuda:0 and cpu!");
  EXPECT_EQ(thrown([&] { torch::add_out(host, first, first); }), kTwoDevices + "cuda:0 and cpu!");
}

TEST_F(DeviceRules, TernaryOperatorsTakeNoCpuScalar) {
  // addcmul learned to take one, as the last, in 2.7.
  EXPECT_EQ(thrown([&] { torch::addcmul(first, first, hostScalar); }),
            newAddcmul ? "" : kTwoDevices + "cuda:0 and cpu!");
  EXPECT_EQ(
      thrown([&] { torch::addcmul(hostScalar, first, first); }),
      newAddcmul
          ? "CPU Scalar support for self argument is not supported when calling addcmul on CUDA tensors."
          : kTwoDevices + "cuda:0 and cpu!");
  EXPECT_EQ(thrown([&] { torch::addcdiv(first, hostScalar, first); }), kTwoDevices + "cuda:0 and cpu!");
  // lerp learned to take one in 2.0.
  EXPECT_EQ(thrown([&] { torch::lerp(first, first, hostScalar); }),
            isTorch1 ? kTwoDevices + "cuda:0 and cpu!" : "");
}

TEST_F(DeviceRules, StrictOperatorsNameTheArgument) {
  auto matrix = torch::ones({3, 3}, on(gpu0));
  EXPECT_EQ(thrown([&] { torch::cat({host, first}); }), strictError("cpu", "cuda:0", "tensors", "cat"));
  EXPECT_EQ(thrown([&] { torch::stack({first, second}); }),
            strictError("cuda:0", "cuda:1", "tensors", "cat"));
  EXPECT_EQ(thrown([&] { matrix.mm(torch::ones({3, 3})); }), strictError("cuda:0", "cpu", "mat2", "mm"));
  EXPECT_EQ(thrown([&] { first.index_select(0, hostIndex); }),
            strictError("cuda:0", "cpu", "index", "_index_select"));
  EXPECT_EQ(thrown([&] { torch::nll_loss(matrix, torch::zeros({3}, torch::kLong)); }),
            strictError("cuda:0", "cpu", "target", "nll_loss_forward"));
}

TEST_F(DeviceRules, StrictOperatorsCheckDevicesBeforeShapes) {
  EXPECT_EQ(thrown([&] { torch::ones({3, 3}, on(gpu0)).mm(torch::ones({7, 2})); }).rfind(kSameDevice, 0), 0u);
  EXPECT_EQ(thrown([&] { torch::cat({first, torch::ones({2, 2})}); }).rfind(kSameDevice, 0), 0u);
}

TEST_F(DeviceRules, IndicesMayStayOnTheCpu) {
  auto table = torch::arange(9, on(gpu0).dtype(torch::kFloat)).view({3, 3});
  EXPECT_EQ(table.index({torch::tensor({0, 2})}).sum().item<float>(), 24);
  EXPECT_EQ(table.index({table.cpu() > 4}).device(), gpu0);
  table.index_put_({torch::tensor({0})}, first);
  table.index_put_({torch::tensor({1}).to(gpu1)}, hostScalar);
  EXPECT_EQ(table.index({Slice(0, 2)}).sum().item<float>(), 9);
  EXPECT_EQ(thrown([&] { host.index({hostIndex.to(gpu0)}); }),
            "indices should be either on cpu or on the same device as the indexed tensor (cpu)");
  EXPECT_EQ(thrown([&] { table.index_put_({hostIndex}, host); }), kTwoDevices + "cuda:0 and cpu!");
  EXPECT_EQ(thrown([&] { table.index_put_({hostIndex}, host, /*accumulate=*/true); }),
            "expected device cuda:0 but got device cpu for value tensor");
}

TEST_F(DeviceRules, AssigningAnElementCopies) {
  auto table = torch::zeros({2, 3}, on(gpu0));
  table[0] = host;
  table.index({1}) = second;
  table.index_put_({1, Slice()}, host * 2);
  EXPECT_EQ(table.sum().item<float>(), 9);
}

TEST_F(DeviceRules, MasksBelongToTheTensor) {
  auto mask = torch::ones({3}, torch::kBool);
  const char *text =
      "expected self and mask to be on the same device, but got mask on cpu and self on cuda:0";
  EXPECT_EQ(thrown([&] { first.masked_fill(mask, 0); }), text);
  EXPECT_EQ(thrown([&] { first.masked_fill_(mask.to(gpu0), hostScalar); }), "");
  EXPECT_EQ(thrown([&] { host.masked_fill_(mask, firstScalar); }),
            "masked_fill_: Expected inputs to be on same device");
  EXPECT_EQ(first.sum().item<float>(), 6);
}

// Seen on an H200 with LibTorch 2.11: index_put_ moves masks to the tensor.
TEST_F(DeviceRules, MasksOfIndexPutMayBeAnywhere) {
  host.index_put_({(host > -1).to(gpu0)}, 4.0);
  EXPECT_EQ(host.sum().item<float>(), 12);
  using List =
      c10::List<c10::optional<torch::Tensor>>; // values as they are: a braced list drops dimensions of 1
  const auto hostMask = host > -1, value = torch::full({1}, 5.0);
  first.index_put_(List({first > -1}), value); // becomes masked_fill_ with a number
  EXPECT_EQ(first.sum().item<float>(), 15);
  EXPECT_EQ(thrown([&] { first.index_put_(List({hostMask}), value); }), kTwoDevices + "cuda:0 and cpu!");
}

TEST_F(DeviceRules, ConvolutionComparesTypesThenDevices) {
  torch::nn::Conv2d convolution(3, 2, 3);
  convolution->to(gpu0);
  EXPECT_EQ(thrown([&] {
              convolution(torch::ones({1, 3, 5, 5}));
            }).rfind("Input type (CPUFloatType) and weight type (CUDAFloatType) should be the same", 0),
            0u);
  EXPECT_EQ(thrown([&] { convolution(torch::ones({1, 3, 5, 5}, on(gpu1))); }),
            strictError("cuda:1", "cuda:0", "weight", "_cudnn_convolution"));
}

TEST_F(DeviceRules, ModulesNameTheirInnerOperator) {
  torch::nn::Linear linear(3, 2);
  linear->to(gpu0);
  EXPECT_EQ(thrown([&] { linear(torch::ones({1, 3})); }), strictError("cuda:0", "cpu", "mat1", "addmm"));
  torch::nn::Embedding embedding(3, 2);
  embedding->to(gpu0);
  EXPECT_EQ(thrown([&] { embedding(hostIndex); }), strictError("cuda:0", "cpu", "index", "_index_select"));
  torch::nn::LSTM lstm(3, 2);
  lstm->to(gpu0);
  auto state = std::make_tuple(torch::zeros({1, 1, 2}), torch::zeros({1, 1, 2}));
  EXPECT_EQ(thrown([&] { lstm(torch::ones({1, 1, 3}, on(gpu0)), state); }),
            "Input and hidden tensors are not at the same device, found input tensor at cuda:0 and hidden "
            "tensor at cpu");
}

TEST_F(DeviceRules, ForeachFallsBackPerTensor) {
  auto sums = torch::_foreach_add({first, second}, {first, second});
  EXPECT_EQ(sums[0].device(), gpu0);
  EXPECT_EQ(sums[1].device(), gpu1);
  EXPECT_EQ(thrown([&] { torch::_foreach_add({first, second}, {first, first}); }),
            kTwoDevices + "cuda:1 and cuda:0!");
}

TEST_F(DeviceRules, TolerantOperators) {
  auto logits = torch::randn({5, 1, 4}, on(gpu0)).log_softmax(2);
  auto length = torch::tensor({5}), targetLength = torch::tensor({2});
  EXPECT_EQ(torch::ctc_loss(logits, torch::tensor({{1, 2}}), length, targetLength).device(), gpu0);
  EXPECT_EQ(first.fill_(hostScalar).sum().item<float>(), 6);
  host.copy_(second);
  EXPECT_TRUE(torch::empty({3}, on(gpu0)).bernoulli_(torch::ones({3})).equal(torch::ones({3}, on(gpu0))));
}

TEST_F(DeviceRules, Generators) {
  auto generator = torch::make_generator<at::CPUGeneratorImpl>();
  EXPECT_EQ(thrown([&] { first.normal_(0, 1, generator); }),
            "Expected a 'cuda' device type for generator but found 'cpu'");
}

TEST_F(DeviceRules, GradientsOfTwoDevicesDoNotClip) {
  auto a = torch::ones({2}, leafOn(gpu0)), b = torch::ones({2}, leafOn(gpu1));
  (a.sum() + b.sum().to(gpu0)).backward();
  EXPECT_EQ(thrown([&] { torch::nn::utils::clip_grad_norm_(std::vector<torch::Tensor>{a, b}, 1.0); }),
            strictError("cuda:0", "cuda:1", "tensors", "cat"));
}

TEST_F(DeviceRules, OperatorsWithoutCudaKernelSaySo) {
  std::string text = thrown([&] { torch::histogram(first, 3); });
  EXPECT_NE(text.find("Could not run 'aten::histogram"), std::string::npos) << text;
  EXPECT_NE(text.find("'CUDA' backend"), std::string::npos) << text;
}

} // namespace
