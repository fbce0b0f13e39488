//===- Allocator.h - allocators of virtual devices --------------*- C++ -*-===//
//
// The allocators of the virtual devices, and the storages that show device bytes to CPU kernels.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/StorageImpl.h>

namespace vcuda {

/// Stamps cuda:current on what it allocates.
c10::Allocator *deviceAllocator();

/// Allocates on the current virtual device but stamps the memory cpu: what CPU kernels grow and return
/// while they work for a device. Relabelled when it leaves the kernel.
c10::Allocator *kernelAllocator();

/// The storage that shows the bytes of `storage` to CPU kernels. It is resizable; when a kernel has
/// resized it, adoptResized() gives the new memory back to the device storage.
c10::intrusive_ptr<c10::StorageImpl> hostView(c10::StorageImpl &storage);
void adoptResized(c10::StorageImpl &storage, c10::StorageImpl &view);

/// Turns memory a CPU kernel produced into memory of device `index`.
void labelAsDevice(c10::StorageImpl &storage, int index);

/// While one of these lives on a thread, the CPU allocator of that thread serves the virtual device.
class KernelMemoryScope {
public:
  explicit KernelMemoryScope(int device);
  ~KernelMemoryScope();
  KernelMemoryScope(const KernelMemoryScope &) = delete;
  KernelMemoryScope &operator=(const KernelMemoryScope &) = delete;

private:
  int previous_;
};

} // namespace vcuda
