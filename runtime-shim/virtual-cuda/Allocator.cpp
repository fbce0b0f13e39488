#include "Allocator.h"

#include "Blocks.h"
#include "Compat.h"
#include "Devices.h"
#include "HostMemory.h"
#include "Origins.h"

#include <c10/core/CPUAllocator.h>

#include <cstring>

namespace vcuda {

void AllocatorBase::copy_data(void *target, const void *source, size_t bytes) const {
  std::memcpy(hostAddress(target), hostAddress(source), bytes);
}

namespace {

const c10::Device kCpu(c10::kCPU);

c10::DataPtr memoryForKernels(size_t bytes, int device) {
  void *data = newBlock(bytes, device);
  return {data, data, &freeBlock, kCpu};
}

class DeviceAllocator final : public AllocatorBase {
public:
  c10::DeleterFnPtr raw_deleter() const override { return &freeBlock; }

private:
  c10::DataPtr make(size_t bytes) const override {
    int device = currentDevice();
    void *data = visibleAddress(newBlock(bytes, device));
    return {data, data, &freeBlock, c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(device))};
  }
};

class KernelAllocator final : public AllocatorBase {
public:
  c10::DeleterFnPtr raw_deleter() const override { return &freeBlock; }

private:
  c10::DataPtr make(size_t bytes) const override { return memoryForKernels(bytes, currentDevice()); }
};

thread_local int kernelDevice = -1;
c10::Allocator *plainCpuAllocator = nullptr;

void freeEither(void *data) {
  if (deviceOfPointer(data) >= 0)
    return freeBlock(data);
  forgetOrigin(data);
  plainCpuAllocator->raw_deallocate(data);
}

// Notes where CPU tensors come from; costs a lookup when they are freed.
c10::DataPtr trackedCpuMemory(size_t bytes) {
  c10::DataPtr memory = plainCpuAllocator->allocate(bytes);
  bool plain = memory.get() && memory.get_context() == memory.get() &&
               memory.get_deleter() == plainCpuAllocator->raw_deleter();
  if (!plain)
    return memory;
  noteOrigin(memory.get());
  void *data = memory.release_context();
  return {data, data, &freeEither, kCpu};
}

// The process's CPU allocator: the one it replaced, except inside a KernelMemoryScope.
class SwitchingCpuAllocator final : public AllocatorBase {
public:
  c10::DeleterFnPtr raw_deleter() const override { return &freeEither; }

private:
  c10::DataPtr make(size_t bytes) const override {
    if (kernelDevice >= 0)
      return memoryForKernels(bytes, kernelDevice);
    return originsAreKept() ? trackedCpuMemory(bytes) : plainCpuAllocator->allocate(bytes);
  }
};

struct InstallAllocators {
  InstallAllocators() {
    plainCpuAllocator = c10::GetCPUAllocator();
    static SwitchingCpuAllocator cpu;
    c10::SetCPUAllocator(&cpu, /*priority=*/1);
    c10::SetAllocator(c10::kCUDA, deviceAllocator());
  }
} const installAllocators;

void noDelete(void *) {}

c10::intrusive_ptr<c10::StorageImpl> makeView(c10::StorageImpl &storage) {
  void *data = hostAddress(dataOf(storage));
  return c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), storage.nbytes(),
                                               c10::DataPtr(data, data, &noDelete, kCpu), kernelAllocator(),
                                               /*resizable=*/true);
}

} // namespace

c10::Allocator *deviceAllocator() {
  static DeviceAllocator allocator;
  return &allocator;
}

c10::Allocator *kernelAllocator() {
  static KernelAllocator allocator;
  return &allocator;
}

c10::intrusive_ptr<c10::StorageImpl> hostView(c10::StorageImpl &storage) {
  c10::DataPtr &memory = dataPtrOf(storage);
  if (!memory.get() || memory.get_deleter() != &freeBlock || memory.get_context() != memory.get())
    return makeView(storage);
  // One view per allocation, so that kernels recognise tensors that share memory.
  std::atomic<c10::StorageImpl *> &slot = blockAt(memory.get())->view;
  c10::StorageImpl *view = slot.load(std::memory_order_acquire);
  if (!view) {
    c10::StorageImpl *fresh = makeView(storage).release();
    if (slot.compare_exchange_strong(view, fresh, std::memory_order_acq_rel))
      view = fresh;
    else
      c10::intrusive_ptr<c10::StorageImpl>::reclaim(fresh);
  }
  if (view->nbytes() != storage.nbytes())
    view->set_nbytes(storage.nbytes());
  return c10::intrusive_ptr<c10::StorageImpl>::unsafe_reclaim_from_nonowning(view);
}

void labelAsDevice(c10::StorageImpl &storage, int index) {
  c10::Device device(c10::kCUDA, static_cast<c10::DeviceIndex>(index));
  c10::DataPtr &memory = dataPtrOf(storage);
  void *data = memory.get();
  if (visibleAddress(data) != data && memory.get_deleter() == &freeBlock) {
    memory.release_context();
    data = visibleAddress(data);
    storage.set_data_ptr_noswap(c10::DataPtr(data, data, &freeBlock, device));
  } else {
    memory.unsafe_set_device(device);
  }
  storage.set_allocator(deviceAllocator());
}

void adoptResized(c10::StorageImpl &storage, c10::StorageImpl &view) {
  bool moved = dataOf(view) != hostAddress(dataOf(storage));
  if (!moved && view.nbytes() == storage.nbytes())
    return;
  if (moved) {
    int device = storage.device().index();
    storage.set_data_ptr_noswap(view.set_data_ptr(c10::DataPtr(nullptr, kCpu)));
    labelAsDevice(storage, device);
  }
  storage.set_nbytes(view.nbytes());
}

KernelMemoryScope::KernelMemoryScope(int device) : previous_(kernelDevice) { kernelDevice = device; }
KernelMemoryScope::~KernelMemoryScope() { kernelDevice = previous_; }

} // namespace vcuda
