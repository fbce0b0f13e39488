// Where bytes are: copies, views, storage, in-place and out forms, pinning, devices and streams.
#include "TestSupport.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>

#include <sstream>
#include <thread>

using namespace support;
using torch::indexing::Slice;

namespace {

TEST(Memory, DevicesAreThere) {
  EXPECT_TRUE(torch::cuda::is_available());
  EXPECT_EQ(torch::cuda::device_count(), 4u);
  EXPECT_EQ(thrown([] { torch::empty({1}, torch::Device("cuda:4")); }), "CUDA error: invalid device ordinal");
  torch::cuda::synchronize();
}

TEST(Memory, CopiesBetweenDevices) {
  torch::Device gpu3("cuda:3");
  auto a = torch::arange(6, on(gpu1)).view({2, 3});
  auto b = a.to(gpu3);
  EXPECT_EQ(b.device(), gpu3);
  EXPECT_NE(a.data_ptr(), b.data_ptr());
  EXPECT_TRUE(b.cpu().equal(a.cpu()));
  a.copy_(b.t().contiguous().view({2, 3}));
  b.copy_(torch::zeros({2, 3}, torch::kLong));
  EXPECT_EQ(b.sum().item<int64_t>(), 0);
  EXPECT_EQ(a.cuda().device(), gpu0);
  EXPECT_EQ(a.to(torch::kDouble).device(), gpu1);
}

TEST(Memory, ViewsShareBytes) {
  auto a = torch::zeros({4, 4}, on(gpu0));
  a.view({16}).slice(0, 0, 4).fill_(1);
  a.t().select(0, 1).add_(1);
  a.as_strided({2}, {5}, 10).add_(10);
  a.unfold(0, 2, 2)[1].mul_(1);
  a.reshape({2, 8}).index({1, 7}) = 100;
  EXPECT_EQ(a.sum().item<float>(), 4 + 4 + 10 + 100);
  EXPECT_TRUE(a.view({16}).is_alias_of(a));
  auto z = torch::view_as_complex(torch::ones({3, 2}, on(gpu0)));
  EXPECT_EQ(torch::view_as_real(z * z).sum().item<float>(), 6);
  EXPECT_EQ(torch::real(z.conj() * z).sum().item<float>(), 6);
}

TEST(Memory, OutFormsResizeTheOutput) {
  auto a = torch::ones({3}, on(gpu1)), out = torch::empty({0}, on(gpu1));
  void *before = out.data_ptr();
  torch::add_out(out, a, a);
  EXPECT_NE(out.data_ptr(), before);
  EXPECT_EQ(out.device(), gpu1);
  EXPECT_EQ(out.sum().item<float>(), 6);
  torch::cat_out(out, {a, a});
  EXPECT_EQ(out.size(0), 6);
  torch::arange_out(out, 0, 5, 1);
  EXPECT_EQ(out.sum().item<float>(), 10);
  EXPECT_EQ(out.storage().device(), gpu1);
}

TEST(Memory, ResizeKeepsBytesAndViews) {
  auto a = torch::arange(4, on(gpu0).dtype(torch::kFloat));
  auto view = a.slice(0, 1, 3);
  a.resize_({1000});
  EXPECT_EQ(a.slice(0, 0, 4).sum().item<float>(), 6);
  view.fill_(7);
  EXPECT_EQ(a[1].item<float>(), 7);
  EXPECT_EQ(a.storage().device(), gpu0);
  a.resize_({2});
  EXPECT_EQ(a.size(0), 2);
}

TEST(Memory, SetAndSetData) {
  auto a = torch::zeros({3}, on(gpu0)), b = torch::ones({2, 2}, on(gpu0));
  a.set_(b);
  EXPECT_TRUE(a.is_alias_of(b));
  a.set_();
  EXPECT_EQ(a.numel(), 0);
  a.set_(b.storage(), 1, {3}, {1});
  EXPECT_EQ(a.sum().item<float>(), 3);
  a.set_data(torch::ones({5}));
  EXPECT_EQ(a.device(), cpu);
  EXPECT_NE(thrown([&] { b.set_(torch::ones({2}, on(gpu1))); }), "");
}

TEST(Memory, PinnedMemory) {
  auto a = torch::ones({3}, torch::TensorOptions().pinned_memory(true));
  EXPECT_TRUE(a.is_pinned());
  EXPECT_FALSE(torch::ones({3}).is_pinned());
  auto b = torch::ones({2, 2}).pin_memory();
  EXPECT_TRUE(b.is_pinned());
  EXPECT_EQ(b.to(gpu1, /*non_blocking=*/true).sum().item<float>(), 4);
  EXPECT_EQ(thrown([&] { b.to(gpu0).pin_memory(); }),
            "cannot pin 'CUDAFloatType' only dense CPU tensors can be pinned");
}

TEST(Memory, FromBlobKnowsWhoseMemoryItIs) {
  float values[3] = {1, 2, 3};
  for (const auto &device : {gpu0, torch::Device(torch::kCUDA)})
    EXPECT_EQ(thrown([&] { torch::from_blob(values, {3}, on(device)); }),
              "The specified pointer resides on host memory and is not registered with any CUDA device.");
  auto a = torch::ones({4}, on(gpu1));
  auto tail = torch::from_blob(a.data_ptr<float>() + 2, {2}, on(gpu1));
  tail.fill_(5);
  EXPECT_EQ(a.sum().item<float>(), 12);
  EXPECT_EQ(thrown([&] { torch::from_blob(a.data_ptr(), {2}, on(gpu0)); }),
            "Specified device cuda:0 does not match device of data cuda:1");
}

TEST(Memory, CurrentDeviceIsPerThread) {
  c10::DeviceGuard guard(gpu1);
  EXPECT_EQ(torch::ones({1}, torch::kCUDA).device(), gpu1);
  EXPECT_EQ(torch::ones({1}).device(), cpu);
  std::thread([] { EXPECT_EQ(torch::ones({1}, torch::kCUDA).device(), gpu0); }).join();
  {
    c10::DeviceGuard inner(gpu0);
    EXPECT_EQ(torch::ones({1}, on(gpu1)).cuda().device(), gpu0);
  }
  EXPECT_EQ(torch::ones({1}, torch::kCUDA).device(), gpu1);
}

TEST(Memory, StreamsAndEvents) {
  c10::impl::VirtualGuardImpl impl(torch::kCUDA);
  c10::Stream side = impl.getStreamFromGlobalPool(gpu1);
  {
    c10::StreamGuard guard(side);
    EXPECT_EQ(impl.getStream(gpu1), side);
    EXPECT_EQ(torch::ones({1}, torch::kCUDA).device(), gpu1);
    torch::ones({1}, on(gpu1)).record_stream(side);
  }
  EXPECT_EQ(impl.getStream(gpu1), impl.getDefaultStream(gpu1));
  c10::Event event(torch::kCUDA);
  event.record(side);
  EXPECT_TRUE(event.query());
  event.block(impl.getDefaultStream(gpu1));
  side.synchronize();
}

TEST(Memory, RandomNumbers) {
  torch::manual_seed(7);
  auto a = torch::randn({5}, on(gpu0)), b = torch::randn({5}, on(gpu1));
  torch::manual_seed(7);
  EXPECT_TRUE(torch::randn({5}, on(gpu0)).equal(a));
  EXPECT_TRUE(torch::randn({5}, on(gpu1)).equal(b));
  EXPECT_EQ(torch::randperm(10, on(gpu1)).device(), gpu1);
  EXPECT_EQ(torch::multinomial(torch::ones({3}, on(gpu1)), 2).device(), gpu1);
  EXPECT_EQ(torch::rand_like(b).device(), gpu1);
}

TEST(Memory, FactoriesFollowTheirOptions) {
  for (auto t : {torch::eye(3, on(gpu1)), torch::linspace(0, 1, 3, on(gpu1)), torch::full({2}, 3.0, on(gpu1)),
                 torch::tril_indices(3, 3, 0, on(gpu1)), torch::zeros_like(torch::ones({2}, on(gpu1))),
                 torch::ones({2}, on(gpu1)).new_zeros({3}), torch::tensor({1.0, 2.0}, on(gpu1))})
    EXPECT_EQ(t.device(), gpu1);
  EXPECT_EQ(torch::ones({2}, on(gpu1)).nonzero().device(), gpu1);
  EXPECT_EQ(std::get<1>(torch::ones({2}, on(gpu1)).sort()).device(), gpu1);
}

TEST(Memory, HalfPrecisionComputes) {
  auto options = on(gpu0).dtype(torch::kHalf);
  auto a = torch::full({2, 2}, 1.5, options);
  auto product = a.mm(a);
  EXPECT_EQ(product.scalar_type(), torch::kHalf);
  EXPECT_EQ(product.device(), gpu0);
  EXPECT_EQ(product.sum().item<float>(), 18);
  product.addmm_(a, a);
  EXPECT_EQ(product.sum().item<float>(), 36);
  EXPECT_EQ(torch::softmax(a, 1, torch::kFloat).scalar_type(), torch::kFloat);
  auto leaf = a.detach().requires_grad_();
  torch::log_softmax(leaf, 1, torch::kFloat).square().sum().backward();
  EXPECT_EQ(leaf.grad().scalar_type(), torch::kHalf);
  EXPECT_NE(thrown([&] { a.mm(torch::ones({2, 2}, on(gpu0))); }), "");
  torch::nn::Sequential net(torch::nn::Conv2d(1, 2, 3), torch::nn::BatchNorm2d(2), torch::nn::ReLU(),
                            torch::nn::Flatten(), torch::nn::Linear(8, 3));
  net->to(gpu0, torch::kHalf);
  net->forward(torch::ones({1, 1, 4, 4}, options)).sum().backward();
  EXPECT_EQ(net->parameters()[0].grad().scalar_type(), torch::kHalf);
}

TEST(Memory, SparseTensorsFollowTheirDevice) {
  auto dense = torch::eye(3, on(gpu1));
  auto sparse = dense.to_sparse();
  EXPECT_EQ(sparse.device(), gpu1);
  EXPECT_EQ(sparse._values().device(), gpu1);
  EXPECT_TRUE((sparse + sparse).to_dense().equal(dense * 2));
  EXPECT_EQ(sparse.to(gpu0)._indices().device(), gpu0);
  EXPECT_EQ(sparse.cpu().device(), cpu);
  EXPECT_NE(thrown([&] { sparse + sparse.to(gpu0); }), "");

  torch::nn::Embedding table(torch::nn::EmbeddingOptions(5, 3).sparse(true));
  table->to(gpu1);
  auto before = table->weight.detach().clone();
  table(torch::arange(3, on(gpu1))).sum().backward();
  EXPECT_TRUE(table->weight.grad().is_sparse());
  torch::optim::SGD(table->parameters(), 0.5).step();
  EXPECT_NEAR((before - table->weight.detach()).sum().item<float>(), 4.5, 1e-4);
}

TEST(Memory, Prints) {
  std::ostringstream text;
  text << torch::ones({2}, on(gpu1));
  EXPECT_NE(text.str().find("CUDAFloatType{2}"), std::string::npos) << text.str();
}

} // namespace
