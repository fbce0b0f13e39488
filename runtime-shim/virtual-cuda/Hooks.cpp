// What ATen asks of "the CUDA library": is it there, how many devices, whose generator, which pointer.
#include "Allocator.h"
#include "Compat.h"
#include "Devices.h"
#include "Generator.h"

#include <ATen/detail/CUDAHooksInterface.h>

namespace vcuda {

// The registry looks the class up by this name.
struct CUDAHooks final : at::CUDAHooksInterface {
  explicit CUDAHooks(at::CUDAHooksArgs) {}

  void initCUDA() const override {}
  bool hasCUDA() const override { return deviceCount() > 0; }
  bool hasCUDART() const override { return false; }
  int getNumGPUs() const override { return deviceCount(); }
  int64_t current_device() const override { return currentDevice(); }
  bool hasPrimaryContext(int64_t device) const override { return device >= 0 && device < deviceCount(); }
  void deviceSynchronize(int64_t) const override {}
  at::Allocator *getPinnedMemoryAllocator() const override { return pinnedAllocator(); }
  at::Allocator *getCUDADeviceAllocator() const override { return deviceAllocator(); }
  bool isPinnedPtr(void *data) const override { return isPinned(data); }

  const at::Generator &getDefaultCUDAGenerator(at::DeviceIndex device) const override {
    return defaultGenerator(device);
  }

  at::Device getDeviceFromPtr(void *data) const override {
    int device = deviceOfPointer(data);
    if (device >= 0)
      return at::Device(at::kCUDA, static_cast<at::DeviceIndex>(device));
    TORCH_CHECK(!kHostPointerIsAnError,
                "The specified pointer resides on host memory and is not registered with any CUDA device.");
    return at::Device(at::kCPU);
  }

  std::string showConfig() const override {
    return "  - virtual CUDA: " + std::to_string(deviceCount()) + " devices on host memory\n";
  }
};

} // namespace vcuda

namespace at {
using vcuda::CUDAHooks;
REGISTER_CUDA_HOOKS(CUDAHooks);
} // namespace at
