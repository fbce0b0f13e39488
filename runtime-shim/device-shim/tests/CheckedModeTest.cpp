// What checked() says about tensors of no dimensions, which most operators accept on the CPU and some do not.
#include "Ranks.h"

#include <device_shim/CheckedMode.h>
#include <device_shim/Error.h>

using namespace device_shim;

RANK_WORKER(scalars_are_explained) {
  const auto here = torch::ones({2}, torch::Device("cuda:0"));
  const auto scalar = torch::tensor(2.0);
  MUST_THROW(
      checked("the update", [&] { return torch::addcmul(here, here, scalar); }), DeviceError,
      "the update: aten::addcmul got cuda:0 [2], cuda:0 [2], cpu []; LibTorch says: Expected all tensors");
  CheckedMode mode;
  MUST((here * scalar).sum().item<double>() == 4);
  MUST(mode.last_mixed_call().empty() && mode.mixed_calls().empty());
}

TEST(CheckedMode, ExplainsScalars) {
  if (!ranks::haveVirtualGpus())
    GTEST_SKIP() << "no library of virtual GPUs";
  ranks::runAll({"scalars_are_explained", 1, 1});
}
