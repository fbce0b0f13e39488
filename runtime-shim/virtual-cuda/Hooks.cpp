// What ATen asks of "the CUDA library": is it there, how many devices, whose generator, which pointer.
#include "Allocator.h"
#include "Blocks.h"
#include "Compat.h"
#include "Devices.h"
#include "Generator.h"
#include "PinnedMemory.h"

#include <array>

namespace vcuda {
namespace {

// The number of a device has another type in each release.
template <typename Index> Index indexOf(int64_t (at::CUDAHooksInterface::*)(Index) const);
using PlanCacheDevice = decltype(indexOf(&at::CUDAHooksInterface::cuFFTGetPlanCacheMaxSize));

int64_t &mostPlans(int64_t device) {
  static std::array<int64_t, kMaxDevices> most = [] {
    std::array<int64_t, kMaxDevices> all{};
    all.fill(4096); // cuFFT's limit
    return all;
  }();
  TORCH_CHECK(device < deviceCount(), "cufft_plan_cache: no device ", device);
  return most[static_cast<size_t>(device < 0 ? currentDevice() : device)];
}

} // namespace

// The registry looks the class up by this name.
struct CUDAHooks final : HooksBase {
  explicit CUDAHooks(at::CUDAHooksArgs) {}

  bool hasCUDA() const override { return vcuda::deviceCount() > 0; }
  bool hasCUDART() const override { return false; }
  int count() const override { return vcuda::deviceCount(); }
  int current() const override { return vcuda::currentDevice(); }
  int exchange(int device) const override {
    int previous = vcuda::currentDevice();
    vcuda::setCurrentDevice(device);
    return previous;
  }
  bool pinned(const void *data) const override { return isPinned(data); }
  const at::Generator &generatorOf(int device) const override { return defaultGenerator(device); }
  at::Generator newGenerator(int device) const override { return createGenerator(device); }
  at::Allocator *getPinnedMemoryAllocator() const override { return pinnedAllocator(); }
  at::Allocator *getCUDADeviceAllocator() const override { return deviceAllocator(); }

  at::Device getDeviceFromPtr(void *data) const override {
    int device = deviceOfPointer(data);
    TORCH_CHECK(device >= 0,
                "The specified pointer resides on host memory and is not registered with any CUDA device.");
    return at::Device(at::kCUDA, static_cast<at::DeviceIndex>(device));
  }

  // There are no plans of cuFFT; programs set how many are kept.
  int64_t cuFFTGetPlanCacheMaxSize(PlanCacheDevice device) const override { return mostPlans(device); }
  void cuFFTSetPlanCacheMaxSize(PlanCacheDevice device, int64_t most) const override {
    mostPlans(device) = most;
  }
  int64_t cuFFTGetPlanCacheSize(PlanCacheDevice) const override { return 0; }
  void cuFFTClearPlanCache(PlanCacheDevice) const override {}

  std::string showConfig() const override {
    return "  - virtual CUDA: " + std::to_string(vcuda::deviceCount()) + " devices on host memory\n";
  }
};

} // namespace vcuda

namespace at {
using vcuda::CUDAHooks;
REGISTER_CUDA_HOOKS(CUDAHooks);
} // namespace at
