// Memory of the devices: statistics, limits, raw allocations.
#include "Module.h"
#include "TorchCompat.h"

#include "Blocks.h"

#include <ATen/Context.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>

namespace vcuda::python {
namespace {

namespace py = pybind11;

int checked(int64_t index) {
  TORCH_CHECK(index >= 0 && index < c10::impl::VirtualGuardImpl(c10::kCUDA).deviceCount(),
              "Invalid device argument ", index, ": did you call init?");
  return static_cast<int>(index);
}

py::dict amount(const Amount &each) {
  py::dict result;
  result["current"] = each.current;
  result["peak"] = each.peak;
  result["allocated"] = each.allocated;
  result["freed"] = each.freed;
  return result;
}

// Every allocation is a segment of its own, and nothing is kept when it is freed.
py::dict pools(const Amount &all, const Amount &small = {}, const Amount &large = {}) {
  py::dict result;
  result["all"] = amount(all);
  result["small_pool"] = amount(small);
  result["large_pool"] = amount(large);
  return result;
}

py::dict statistics(int64_t device) {
  const MemoryUse use = memoryUse(checked(device));
  py::dict result;
  result["num_alloc_retries"] = 0;
  result["num_ooms"] = use.outOfMemory;
  result["max_split_size"] = -1;
  result["num_sync_all_streams"] = 0;
  result["num_device_alloc"] = use.allocations.allocated;
  result["num_device_free"] = use.allocations.freed;
  for (const char *name : {"allocation", "segment", "active"})
    result[name] = pools(use.allocations, {}, use.allocations);
  for (const char *name : {"allocated_bytes", "reserved_bytes", "active_bytes", "requested_bytes"})
    result[name] = pools(use.bytes, {}, use.bytes);
  for (const char *name : {"inactive_split", "inactive_split_bytes"})
    result[name] = pools({});
  for (const char *name : {"oversize_allocations", "oversize_segments"})
    result[name] = amount({});
  return result;
}

py::tuple freeAndTotal(int64_t device) {
  const int index = checked(device);
  const size_t total = totalMemory(), used = memoryUse(index).bytes.current;
  return py::make_tuple(used < total ? total - used : 0, total);
}

// torch.UntypedStorage.resize_() of a device, which a CPU build refuses.
void resizeStorage(const py::object &object, size_t bytes) {
  const c10::Storage storage = storageOf(object);
  TORCH_CHECK(storage.resizable(), "Trying to resize storage that is not resizable");
  const c10::OptionalDeviceGuard guard(storage.device());
  auto &allocator = *static_cast<AllocatorBase *>(c10::GetAllocator(c10::kCUDA));
  c10::DataPtr memory = allocator.allocate(bytes);
  if (const size_t kept = std::min(bytes, storage.nbytes()))
    allocator.copy_data(memory.get(), storage.data(), kept);
  storage.unsafeGetStorageImpl()->set_data_ptr_noswap(std::move(memory));
  storage.set_nbytes(bytes);
}

} // namespace

void addMemory(py::module_ &module) {
  module.def("_cuda_memoryStats", &statistics);
  module.def("_cuda_resetPeakMemoryStats", [](int64_t device) { resetPeakMemory(checked(device)); });
  module.def("_cuda_resetAccumulatedMemoryStats",
             [](int64_t device) { resetAccumulatedMemory(checked(device)); });
  module.def("_cuda_setMemoryFraction",
             [](double fraction, int64_t device) { setMemoryFraction(checked(device), fraction); });
  module.def("_cuda_getMemoryFraction", [](int64_t device) { return memoryFraction(checked(device)); });
  module.def("_cuda_cudaCachingAllocator_raw_alloc", [](size_t bytes, const py::object &) {
    const auto device = c10::impl::VirtualGuardImpl(c10::kCUDA).getDevice().index();
    return reinterpret_cast<uintptr_t>(newBlock(bytes, device));
  });
  module.def("_cuda_cudaCachingAllocator_raw_delete",
             [](uintptr_t pointer) { freeBlock(reinterpret_cast<void *>(pointer)); });
  module.def("_cuda_cudaHostAllocator", [] {
    return reinterpret_cast<uintptr_t>(at::detail::getCUDAHooks().getPinnedMemoryAllocator());
  });
  module.def("resize_storage", &resizeStorage);
  module.def("memory_info", &freeAndTotal);
}

} // namespace vcuda::python
