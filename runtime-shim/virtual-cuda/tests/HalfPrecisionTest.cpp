// Half precision, for which CPUs lack most kernels.
#include "TestSupport.h"

using namespace support;
namespace nn = torch::nn;

namespace {

const torch::ScalarType kHalfTypes[] = {torch::kHalf, torch::kBFloat16};

TEST(HalfPrecision, NormalizationUpdatesItsStatistics) {
  for (torch::ScalarType type : kHalfTypes) {
    nn::BatchNorm2d batch(2);
    nn::InstanceNorm2d instance(nn::InstanceNorm2dOptions(2).track_running_stats(true));
    batch->to(gpu1, type);
    instance->to(gpu1, type);
    auto input = torch::full({4, 2, 3, 3}, 3.0, on(gpu1).dtype(type));
    batch(input);
    instance(input);
    EXPECT_NEAR(batch->running_mean[0].item<float>(), 0.3, 0.01);
    EXPECT_NEAR(batch->running_var[0].item<float>(), 0.9, 0.01);
    EXPECT_NEAR(instance->running_mean[0].item<float>(), 0.3, 0.01);
  }
}

// addmm with out_dtype; older releases of LibTorch have none.
TEST(HalfPrecision, ProductsStayInFloatWhereThatIsWanted) {
  const auto addmm = c10::Dispatcher::singleton().findSchema({"aten::addmm", "dtype_out"});
  if (!addmm)
    GTEST_SKIP() << "no aten::addmm.dtype_out";
  for (torch::ScalarType type : kHalfTypes) {
    auto sum = torch::ones({2, 2}, on(gpu1));
    auto product = [&](const torch::Tensor &left, const torch::Tensor &right, torch::ScalarType result) {
      torch::jit::Stack stack{sum, left, right, result, 1, 1, sum};
      addmm->callBoxed(stack);
    };
    // The sum has more digits than the operands.
    auto left = torch::full({2, 512}, 1.0, on(gpu1).dtype(type)), right = left.t().contiguous();
    right[0] += 1. / 64;
    product(left, right, torch::kFloat);
    EXPECT_EQ(sum[1][0].item<float>(), 513 + 1.f / 64);
    EXPECT_EQ(sum.device(), gpu1);
    EXPECT_NE(thrown([&] { product(left, right.cpu(), torch::kFloat); }), "");
    EXPECT_NE(thrown([&] { product(left, right, torch::kDouble); }), "");
  }
}

TEST(HalfPrecision, ListsOfSeveralTypesAreChangedOnce) {
  for (torch::ScalarType type : kHalfTypes) {
    auto list = [&](double value) {
      return std::vector<torch::Tensor>{torch::full({2}, value, on(gpu0)),
                                        torch::full({2}, value, on(gpu0).dtype(type))};
    };
    auto expect = [](const std::vector<torch::Tensor> &tensors, float value) {
      for (const torch::Tensor &tensor : tensors)
        EXPECT_NEAR(tensor[0].item<float>(), value, value / 100) << tensor.scalar_type();
    };
    auto roots = list(16), powers = list(0), sums = list(1);
    torch::_foreach_sqrt_(roots);
    torch::_foreach_exp_(powers);
    torch::_foreach_addcmul_(sums, sums, sums, 1.0);
    expect(roots, 4);
    expect(powers, 1);
    expect(sums, 2);
    expect(torch::_foreach_sqrt(list(9)), 3);
  }
}

TEST(HalfPrecision, WhatOnlyCpusLackRuns) {
  torch::manual_seed(1);
  for (torch::ScalarType type : kHalfTypes) {
    auto half = on(gpu0).dtype(type);
    EXPECT_EQ(torch::multinomial(torch::tensor({0., 1., 0.}, half), 1).item<int64_t>(), 1);
    auto image = torch::rand({1, 1, 4, 4}), grid = torch::rand({1, 2, 2, 2}) - 0.5;
    auto sample = [](const torch::Tensor &from, const torch::Tensor &at) {
      return torch::grid_sampler(from, at, 0, 0, false);
    };
    EXPECT_TRUE(torch::allclose(sample(image.to(half), grid.to(half)).cpu().to(torch::kFloat),
                                sample(image, grid), 0.05, 0.05));
    nn::ConvTranspose2d convolution(2, 3, 3);
    auto input = torch::randn({1, 2, 5, 5});
    auto expected = convolution(input);
    convolution->to(gpu0, type);
    auto leaf = input.to(half).requires_grad_();
    auto result = convolution(leaf);
    EXPECT_EQ(result.scalar_type(), type);
    EXPECT_TRUE(torch::allclose(result.cpu().to(torch::kFloat), expected, 0.05, 0.05));
    result.sum().backward();
    EXPECT_EQ(leaf.grad().scalar_type(), type);
    nn::EmbeddingBag bag(nn::EmbeddingBagOptions(5, 4).mode(torch::kSum));
    bag->to(gpu0, type);
    bag(torch::tensor({{1, 2}, {1, 3}}, on(gpu0))).square().sum().backward();
    EXPECT_EQ(bag->weight.grad().scalar_type(), type);
  }
}

// An index of the wrong type stays an error.
TEST(HalfPrecision, OtherErrorsStay) {
  nn::EmbeddingBag bag(5, 4);
  bag->to(gpu0, torch::kHalf);
  EXPECT_NE(thrown([&] { bag(torch::ones({2, 2}, on(gpu0).dtype(torch::kHalf))); }), "");
}

} // namespace
