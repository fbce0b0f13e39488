// Ranks that call different operations: an error on all of them that names both, before anything is mixed.
#include "Training.h"

#include "base/Compat.h"
#include "comm/Channel.h"
#include "comm/Standstill.h"

#include <device_shim/Distributed.h>
#include <device_shim/DistributedDataParallel.h>
#include <device_shim/Error.h>

#include <torch/csrc/distributed/c10d/FileStore.hpp>

using namespace device_shim;
using namespace training;
using device_shim::detail::Channel;
using device_shim::detail::Standstill;

namespace {

// A PeerError, within three seconds: the machine may be busy.
void expectPeerError(const std::function<void()> &work) {
  const double begin = ranks::now();
  try {
    work();
  } catch (const PeerError &) {
    MUST(ranks::now() - begin < 3);
    std::cerr << "told after " << ranks::now() - begin << " s\n";
    throw;
  }
  throw std::runtime_error("no error");
}

void expectAllTold(const std::string &worker, const std::vector<std::string> &parts, int count = 2) {
  for (const auto &rank : ranks::run({worker, count, -1, {}, /*seconds=*/30})) {
    EXPECT_EQ(rank.exitCode, 1) << rank.output;
    EXPECT_NE(rank.output.find("told after"), std::string::npos) << rank.output;
    EXPECT_EQ(rank.output.find("failed first"), std::string::npos) << rank.output;
    for (const auto &part : parts)
      EXPECT_NE(rank.output.find(part), std::string::npos) << part << "\n" << rank.output;
  }
}

torch::Tensor numbers(int64_t count) { return torch::ones({count}); }

} // namespace

RANK_WORKER(mismatch_of_operation) {
  auto all = init_distributed();
  expectPeerError([&] { all->rank() == 1 ? all->broadcast(numbers(12)) : all->all_reduce(numbers(12)); });
}
TEST(Mismatch, Operations) {
  expectAllTold("mismatch_of_operation",
                {"ranks 0 and 2 called 'all_reduce of 12 x Float, sum'",
                 "rank 1 called 'broadcast of 12 x Float from rank 0'"},
                3);
}

RANK_WORKER(mismatch_of_shape) {
  auto all = init_distributed();
  all->all_reduce(numbers(7));
  expectPeerError([&] { all->all_reduce(numbers(12 + all->rank())); });
}
TEST(Mismatch, Shapes) {
  expectAllTold("mismatch_of_shape", {"rank 0 called 'all_reduce of 12 x Float, sum'",
                                      "rank 1 called 'all_reduce of 13 x Float, sum'"});
}

RANK_WORKER(mismatch_with_nothing) {
  auto all = init_distributed();
  expectPeerError([&] { all->all_reduce(numbers(4 * all->rank())); });
}
TEST(Mismatch, NothingToSend) { expectAllTold("mismatch_with_nothing", {"all_reduce of 0 x Float"}); }

RANK_WORKER(mismatch_of_reduction) {
  auto all = init_distributed();
  expectPeerError(
      [&] { all->all_reduce(numbers(3), all->rank() == 0 ? Reduction::maximum : Reduction::sum); });
}
TEST(Mismatch, Reductions) {
  expectAllTold("mismatch_of_reduction",
                {"all_reduce of 3 x Float, maximum", "all_reduce of 3 x Float, sum"});
}

RANK_WORKER(mismatch_of_root) {
  auto all = init_distributed();
  expectPeerError([&] { all->broadcast(numbers(3), all->rank()); });
}
TEST(Mismatch, Roots) { expectAllTold("mismatch_of_root", {"from rank 0'", "from rank 1'"}); }

// It comes from wait(), of the operation that differs or of a later one.
RANK_WORKER(mismatch_of_pending) {
  auto all = init_distributed();
  expectPeerError([&] {
    auto first = numbers(5), second = numbers(5 + all->rank()), third = numbers(5);
    auto a = all->all_reduce_async(first), b = all->all_reduce_async(second),
         c = all->all_reduce_async(third);
    a.wait();
    MUST(first.equal(numbers(5) * 2));
    c.wait();
  });
}
TEST(Mismatch, Pending) { expectAllTold("mismatch_of_pending", {"all_reduce of 5 x Float, sum"}); }

// The communicator of the wrapper is that of the program, here.
RANK_WORKER(one_skips_a_batch) {
  auto all = init_distributed();
  Net net;
  DistributedDataParallel<Net> model(net, all);
  expectPeerError([&] {
    for (int step = 0; step < 6; ++step)
      if (all->rank() == 0 || step != 2)
        model.forward(torch::ones({2, kWidth})).sum().backward();
    all->barrier();
  });
}
TEST(Mismatch, SkippedBatch) {
  expectAllTold("one_skips_a_batch", {"in 'all_reduce of 1 x Double, sum'", "of another communicator"});
}

// Each communicator is used as it should be; both ranks wait for ever.
RANK_WORKER(one_evaluates_alone) {
  auto all = init_distributed();
  auto training = all->duplicate();
  expectPeerError([&] {
    for (int step = 0; step < 3; ++step)
      training->all_reduce(numbers(20));
    if (all->rank() == 0)
      all->reduce_number(0.5, Reduction::sum);
    training->all_reduce(numbers(20));
    all->barrier();
  });
}
TEST(Mismatch, EvaluationOfOneRank) {
  expectAllTold("one_evaluates_alone",
                {"in 'all_reduce of 1 x Double, sum'", "in 'all_reduce of 20 x Float, sum'"});
}

// What may differ: the order on several communicators, and how long a rank takes.
RANK_WORKER(agree_in_another_order) {
  auto all = init_distributed();
  auto other = all->duplicate();
  for (int round = 0; round < 3; ++round) {
    auto a = numbers(5), b = numbers(6);
    const bool swapped = all->rank() == 1;
    auto first = swapped ? other->all_reduce_async(b) : all->all_reduce_async(a);
    auto second = swapped ? all->all_reduce_async(a) : other->all_reduce_async(b);
    first.wait();
    if (swapped)
      std::this_thread::sleep_for(std::chrono::milliseconds(700));
    second.wait();
    MUST(a.equal(numbers(5) * 2) && b.equal(numbers(6) * 2));
  }
  if (all->rank() == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  all->barrier();
  // One thread waits on each, and only the other thread of the other rank comes to it late.
  std::thread beside([&] {
    if (all->rank() == 1)
      std::this_thread::sleep_for(std::chrono::milliseconds(2500));
    other->all_reduce(numbers(3));
  });
  all->all_reduce(numbers(4));
  beside.join();
}
TEST(Mismatch, OtherOrderAndSlowRanks) { ranks::runAll({"agree_in_another_order", 2}); }

// Who only compares beside, as with NCCL, fails the job a moment later.
RANK_WORKER(compare_beside) {
  auto store = c10::make_intrusive<c10d::FileStore>(std::string(std::getenv("FOLDER")) + "/store", 2);
  const int rank = std::stoi(std::getenv("RANK"));
  auto options = c10d::ProcessGroupGloo::Options::create(std::chrono::seconds(30));
  options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
  const auto prefixed = [&](const char *prefix) {
    return c10::make_intrusive<c10d::PrefixStore>(prefix, store);
  };
  const auto group = c10::make_intrusive<c10d::ProcessGroupGloo>(prefixed("data"), rank, 2, options);
  Channel channel({0, rank, 2, nullptr, std::chrono::seconds(20)}, group, prefixed("calls"));
  int calls = 0;
  const auto call = [&](compat::Collectives &) {
    ++calls;
    return Channel::Work();
  };
  auto same = channel.start("same", "same", at::kCPU, call);
  auto other = channel.start("other", rank == 0 ? "one" : "two", at::kCPU, call);
  MUST(calls == 2);
  MUST(same.wait_for(std::chrono::seconds(0)) == std::future_status::ready);
  MUST(other.wait_for(std::chrono::seconds(0)) == std::future_status::ready);
  if (rank == 0) // without a watcher of the job only the others learn of it
    return;
  while (channel.problem().empty())
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  MUST(channel.problem() ==
       "the ranks called different operations: rank 0 called 'one', rank 1 called 'two'");
  MUST(!prefixed("calls")->check({"1"}) && !prefixed("calls")->check({"1/readers"}));
}
TEST(Mismatch, ComparedBeside) {
  ranks::runAll({"compare_beside", 2, -1, {{"FOLDER", ranks::temporaryDirectory()}}});
}

namespace {

Standstill::Record waitIn(int channel, int64_t number, std::map<int, int64_t> called, int64_t told) {
  return {1, told, {channel, number, "x"}, std::move(called)};
}

} // namespace

TEST(Standstill, TextIsRead) {
  const auto record = waitIn(3, 12, {{0, 4}, {3, 12}}, 9);
  const auto read = Standstill::Record::fromText(record.text());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->text(), record.text());
  EXPECT_EQ(read->place.what, "x");
  EXPECT_EQ(read->called.at(3), 12);
  EXPECT_FALSE(Standstill::Record::fromText(""));
}

TEST(Standstill, OnlyWhatNeitherHasCalled) {
  Standstill standstill;
  const auto own = waitIn(0, 5, {{0, 5}, {1, 3}}, 1);
  EXPECT_FALSE(standstill.neverEnds(own, 1, waitIn(0, 5, {{0, 5}, {1, 3}}, 1))); // the same
  EXPECT_FALSE(standstill.neverEnds(own, 1, waitIn(1, 3, {{0, 4}, {1, 3}}, 1))); // this rank has called it
  EXPECT_FALSE(standstill.neverEnds(own, 1, waitIn(1, 4, {{0, 4}, {1, 4}}, 1)));
  EXPECT_FALSE(standstill.neverEnds(own, 1, waitIn(1, 4, {{0, 4}, {1, 4}}, 1))); // told once only
  EXPECT_TRUE(standstill.neverEnds(own, 1, waitIn(1, 4, {{0, 4}, {1, 4}}, 2)));
}

TEST(Standstill, AllThreadsWait) {
  Standstill standstill;
  standstill.called(0, 1);
  EXPECT_FALSE(standstill.look());
  const Standstill::Wait wait(&standstill, {0, 1, "a"});
  EXPECT_FALSE(standstill.look()); // it may be over in a moment
  ASSERT_TRUE(standstill.look());
  std::promise<void> ends;
  std::promise<void> waited;
  std::thread other([&] {
    {
      const Standstill::Wait short_(&standstill, {0, 2, "b"});
    }
    waited.set_value();
    ends.get_future().wait();
  });
  waited.get_future().wait();
  EXPECT_FALSE(standstill.look()); // a thread that goes on
  ends.set_value();
  other.join();
  EXPECT_FALSE(standstill.look());
  EXPECT_TRUE(standstill.look()); // it is gone
}
