// Behaviour that depends on the settings the process starts with; each runs in a process of its own.
#include "TestSupport.h"

#include <cstdlib>

using namespace support;

namespace {

TEST(Loading, MemoryLimit) {
  auto held = torch::empty({40 << 20}, on(gpu0).dtype(torch::kByte));
  std::string text = thrown([] { torch::empty({32 << 20}, on(gpu0).dtype(torch::kByte)); });
  EXPECT_EQ(text.rfind(isTorch1
                           ? "CUDA out of memory. Tried to allocate 32.00 MiB (GPU 0; 64.00 MiB total "
                             "capacity; 40.00 MiB already allocated; 24.00 MiB free;"
                           : "CUDA out of memory. Tried to allocate 32.00 MiB. GPU 0 has a total capacity "
                             "of 64.00 MiB of which 24.00 MiB is free.",
                       0),
            0u)
      << text;
  EXPECT_THROW(torch::empty({32 << 20}, on(gpu0).dtype(torch::kByte)), c10::OutOfMemoryError);
  // Results of operators count as much as factories do.
  EXPECT_EQ(thrown([&] { held + 1; }).rfind("CUDA out of memory", 0), 0u);
  torch::empty({32 << 20}, on(gpu1).dtype(torch::kByte));
  held = torch::Tensor();
  torch::empty({32 << 20}, on(gpu0).dtype(torch::kByte));
}

TEST(Loading, Ordinal) {
  std::string text;
  try {
    torch::ones({1}, torch::Device("cuda:4"));
  } catch (const c10::Error &error) {
    text = error.what_without_backtrace();
  }
  EXPECT_EQ(
      text,
      "CUDA error: invalid device ordinal\nthe program asked for cuda:4, but there are 4 virtual devices, "
      "cuda:0 to cuda:3 (device-run --virtual-gpus 5 or VIRTUAL_GPUS=5 makes more)");
}

TEST(Loading, VisibleDevices) {
  const char *expected = std::getenv("EXPECTED_DEVICES");
  EXPECT_EQ(std::to_string(torch::cuda::device_count()), expected ? expected : "4");
}

TEST(Loading, NoDevices) {
  EXPECT_FALSE(torch::cuda::is_available());
  EXPECT_EQ(torch::cuda::device_count(), 0u);
  EXPECT_NE(thrown([] { torch::ones({1}, on(gpu0)); }), "");
}

} // namespace
