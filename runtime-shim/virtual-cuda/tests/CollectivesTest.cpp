// Collectives of c10d's Gloo process group on tensors of virtual GPUs: two ranks, here threads, with a GPU
// each.
#include "TestSupport.h"

#ifdef USE_C10D_GLOO
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/reducer_timer.hpp>

#include <future>

using namespace support;

namespace {

using Tensors = std::vector<torch::Tensor>;

// Calls `part(group, rank, device)` as each of the two ranks, and fails with the exception of one that fails.
template <typename Part> void onTwoRanks(Part part) {
  auto store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::future<void>> ranks;
  for (int rank : {0, 1})
    ranks.push_back(std::async(std::launch::async, [=] {
      auto options = c10d::ProcessGroupGloo::Options::create();
      options->timeout = std::chrono::seconds(60);
      options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
      auto group = c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank, 2, options);
      part(group, rank, torch::Device(torch::kCUDA, static_cast<torch::DeviceIndex>(rank)));
    }));
  for (auto &rank : ranks)
    EXPECT_NO_THROW(rank.get());
}

template <typename Group>
torch::Tensor reduced(const Group &group, torch::Tensor tensor, c10d::ReduceOp::RedOpType reduction) {
  c10d::AllreduceOptions options;
  options.reduceOp = reduction;
  Tensors list = {tensor};
  group->allreduce(list, options)->wait();
  return tensor;
}

void expectAll(const torch::Tensor &tensor, double value, torch::Device device) {
  EXPECT_EQ(tensor.device(), device);
  EXPECT_TRUE(tensor.eq(value).all().item<bool>()) << tensor;
}

TEST(Collectives, AllReduceOfAnyType) {
  onTwoRanks([](const auto &group, int rank, torch::Device device) {
    for (auto type : {torch::kFloat, torch::kDouble, torch::kHalf, torch::kInt, torch::kLong, torch::kByte}) {
      auto own = torch::full({3, 2}, rank + 1, on(device).dtype(type));
      expectAll(reduced(group, own.clone(), c10d::ReduceOp::SUM), 3, device);
      expectAll(reduced(group, own.clone(), c10d::ReduceOp::MAX), 2, device);
      expectAll(reduced(group, own.clone(), c10d::ReduceOp::MIN), 1, device);
    }
  });
}

TEST(Collectives, AllReduceOfPartOfATensor) {
  onTwoRanks([](const auto &group, int rank, torch::Device device) {
    auto whole = torch::full({4, 3}, rank + 1, on(device));
    reduced(group, whole[1], c10d::ReduceOp::SUM);
    expectAll(whole[1], 3, device);
    expectAll(whole[0], rank + 1, device);
    expectAll(whole[2], rank + 1, device);
  });
}

// Reducers of gradients go on with what the future of a work holds.
TEST(Collectives, ResultsOfAnAllReduceAreOnTheDevice) {
  onTwoRanks([](const auto &group, int rank, torch::Device device) {
    Tensors list = {torch::full({5}, rank + 1, on(device))};
    auto future = group->allreduce(list)->getFuture();
    future->wait();
    auto results = future->value().toTensorVector();
    ASSERT_EQ(results.size(), 1u);
    expectAll(results[0], 3, device);
    EXPECT_TRUE(results[0].is_alias_of(list[0]));
  });
}

TEST(Collectives, AllReduceOfSparseTensors) {
  onTwoRanks([](const auto &group, int rank, torch::Device device) {
    auto dense = torch::zeros({4, 2}, on(device));
    dense[rank] = 1;
    dense[3] = 5;
    auto sparse = dense.to_sparse();
    reduced(group, sparse, c10d::ReduceOp::SUM);
    EXPECT_EQ(sparse.device(), device);
    auto expected = torch::tensor({1.f, 1.f, 0.f, 10.f}).view({4, 1}).expand({4, 2});
    EXPECT_TRUE(sparse.to_dense().cpu().equal(expected)) << sparse;
  });
}

TEST(Collectives, Others) {
  onTwoRanks([](const auto &group, int rank, torch::Device device) {
    auto own = [&] { return torch::full({2}, rank + 1.0, on(device)); };
    auto empty = [&] { return torch::zeros({2}, on(device)); };
    Tensors one = {own()};
    group->broadcast(one)->wait();
    expectAll(one[0], 1, device);

    std::vector<Tensors> gathered = {{empty(), empty()}};
    one = {own()};
    group->allgather(gathered, one)->wait();
    expectAll(gathered[0][0], 1, device);
    expectAll(gathered[0][1], 2, device);

    one = {own()};
    group->reduce(one)->wait();
    if (rank == 0)
      expectAll(one[0], 3, device);

    auto from = torch::cat({own(), own() * 10}), to = torch::zeros({4}, on(device));
    std::vector<int64_t> evenly;
    group->alltoall_base(to, from, evenly, evenly)->wait();
    EXPECT_TRUE(to.cpu().equal(torch::tensor({1.f, 1.f, 2.f, 2.f}) * (rank == 0 ? 1 : 10))) << to;
  });
}

TEST(Collectives, StepsAreTimed) {
  using Event = c10d::Timer::Event;
  auto timer = c10d::TimerRegistry()->Create(torch::kCUDA, gpu1);
  ASSERT_TRUE(timer);
  timer->record(Event::kForwardStart);
  EXPECT_FALSE(timer->measureDifference(Event::kForwardStart, Event::kBackwardComputeStart));
  timer->record(Event::kBackwardComputeStart);
  EXPECT_GE(timer->measureDifference(Event::kForwardStart, Event::kBackwardComputeStart).value(), 0);
}

#if TORCH_VERSION_MAJOR >= 2
// Python's torch.distributed and PyTorch's own DistributedDataParallel come this way: an operator is
// dispatched.
TEST(Collectives, DispatchedAllReduce) {
  onTwoRanks([](const auto &gloo, int rank, torch::Device device) {
    auto group = c10::make_intrusive<c10d::ProcessGroup>(rank, 2);
    group->setBackend(torch::kCUDA, c10d::ProcessGroup::BackendType::GLOO, gloo);
    expectAll(reduced(group, torch::full({3}, rank + 1, on(device)), c10d::ReduceOp::SUM), 3, device);
  });
}
#endif

} // namespace
#endif
