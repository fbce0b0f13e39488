// Memory of the virtual devices. It is host memory; what makes it "device" memory is its label, the
// registry that knows which device an address belongs to, and the optional capacity limit.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/StorageImpl.h>

#include <string>

namespace vcuda {

// Stamps cuda:current on what it allocates.
c10::Allocator *deviceAllocator();

// Allocates on the current virtual device but stamps the memory cpu: what CPU kernels grow and return
// while they work for a device. Relabelled when it leaves the kernel.
c10::Allocator *kernelAllocator();

c10::Allocator *pinnedAllocator();

bool isPinned(const void *pointer);

// Device of an address inside any live device allocation, or -1.
int deviceOfPointer(const void *pointer);

// The storage that shows the bytes of `storage` to CPU kernels. It is resizable; when a kernel has
// resized it, adoptResized() gives the new memory back to the device storage.
c10::intrusive_ptr<c10::StorageImpl> hostView(c10::StorageImpl &storage);
void adoptResized(c10::StorageImpl &storage, c10::StorageImpl &view);

// Turns memory a CPU kernel produced into memory of device `index`.
void labelAsDevice(c10::StorageImpl &storage, int index);

// While one of these lives on a thread, the CPU allocator of that thread serves the virtual device.
class KernelMemoryScope {
public:
  explicit KernelMemoryScope(int device);
  ~KernelMemoryScope();
  KernelMemoryScope(const KernelMemoryScope &) = delete;
  KernelMemoryScope &operator=(const KernelMemoryScope &) = delete;

private:
  int previous_;
};

// The most memory a device ever had allocated.
size_t peakMemory(int device);

// 1536 -> "1.50 KiB", as CUDA's out-of-memory text writes sizes.
std::string formatSize(size_t bytes);

} // namespace vcuda
