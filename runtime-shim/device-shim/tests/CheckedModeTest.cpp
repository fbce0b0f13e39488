// What checked() says about tensors of no dimensions, which most operators accept on the CPU and some do not.
#include "Ranks.h"

#include <device_shim/CheckedMode.h>
#include <device_shim/Error.h>

#include <atomic>

using namespace device_shim;

RANK_WORKER(scalars_are_explained) {
  const auto here = torch::ones({2}, torch::Device("cuda:0"));
  const auto scalar = torch::tensor(2.0);
  MUST_THROW(
      checked("the update", [&] { return torch::addcdiv(here, here, scalar); }), DeviceError,
      "the update: aten::addcdiv got cuda:0 [2], cuda:0 [2], cpu []; LibTorch says: Expected all tensors");
  CheckedMode mode;
  MUST((here * scalar).sum().item<double>() == 4);
  MUST(mode.last_mixed_call().empty() && mode.mixed_calls().empty());
}

// Each mode has its own thread's calls, and each of two within one another has a call once.
RANK_WORKER(modes_are_apart) {
  const auto a = torch::ones({2}, torch::Device("cuda:0")), b = torch::ones({2}, torch::Device("cuda:1"));
  const auto mix = [&] { MUST_THROW(a + b, c10::Error, "same device"); };
  CheckedMode outer;
  {
    CheckedMode inner;
    mix();
    MUST(inner.mixed_calls().size() == 1 && outer.mixed_calls().size() == 1);
  }
  mix();
  MUST(outer.mixed_calls().size() == 2);
  std::atomic<size_t> others{0};
  std::thread other([&] {
    try {
      CheckedMode theirs;
      mix();
      others = theirs.mixed_calls().size();
    } catch (const std::exception &) {
    }
  });
  other.join();
  MUST(others == 1 && outer.mixed_calls().size() == 2);
}

// Backward passes run on threads of their own, which belong to the thread that called backward().
RANK_WORKER(backward_is_watched) {
  auto x = torch::ones({2}, torch::TensorOptions(torch::Device("cuda:0")).requires_grad(true));
  auto y = x * 2;
  y.register_hook([](const torch::Tensor &gradient) { return gradient + torch::ones({2}); });
  const auto text = "the pass: aten::add got cuda:0 [2], cpu [2]";
  MUST_THROW(checked("the pass", [&] { y.sum().backward(); }), DeviceError, text);
}

// Only a call that failed explains an error, not one that was fine before, nor one whose error was caught.
RANK_WORKER(only_failed_calls_explain) {
  const auto here = torch::ones({2}, torch::Device("cuda:0"));
  const auto nowhere = [] { torch::zeros({2}, torch::Device("cuda:7")); };
  MUST_THROW(checked("the step",
                     [&] {
                       here *torch::tensor(2.0);
                       nowhere();
                     }),
             c10::Error, "CUDA error: invalid device ordinal");
  MUST_THROW(checked("the step",
                     [&] {
                       MUST_THROW(here + torch::ones({2}), c10::Error, "same device");
                       nowhere();
                     }),
             c10::Error, "CUDA error: invalid device ordinal");
  CheckedMode mode;
  MUST_THROW(here + torch::ones({2}), c10::Error, "same device");
  MUST(mode.failed_call() == "aten::add got cuda:0 [2], cpu [2]");
  MUST(here.sum().item<double>() == 2 && mode.failed_call().empty());
}

namespace {

void onVirtualGpus(const char *worker, int gpus) {
  if (!ranks::haveVirtualGpus())
    GTEST_SKIP() << "no library of virtual GPUs";
  ranks::runAll({worker, 1, gpus});
}

} // namespace

TEST(CheckedMode, ExplainsScalars) { onVirtualGpus("scalars_are_explained", 1); }
TEST(CheckedMode, ModesAreApart) { onVirtualGpus("modes_are_apart", 2); }
TEST(CheckedMode, BackwardPasses) { onVirtualGpus("backward_is_watched", 1); }
TEST(CheckedMode, OnlyFailedCallsExplain) { onVirtualGpus("only_failed_calls_explain", 1); }
