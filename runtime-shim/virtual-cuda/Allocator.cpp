#include "Allocator.h"

#include "Devices.h"

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

namespace vcuda {
namespace {

constexpr size_t kAlignment = 64;
// The granularity CUDA's caching allocator counts in.
constexpr size_t kRounding = 512;
constexpr int kMaxDevices = 64;

// Precedes the bytes of every device allocation, so that a data pointer leads to it.
struct alignas(kAlignment) Block {
  size_t bytes;
  int device;
  // Lazily created storage that shows these bytes to CPU kernels; owns one reference.
  std::atomic<c10::StorageImpl *> view;

  void *data() { return this + 1; }
  static Block *of(void *data) { return static_cast<Block *>(data) - 1; }
};
static_assert(sizeof(Block) == kAlignment, "data must stay aligned behind its header");

struct Counter {
  std::atomic<size_t> current{0};
  std::atomic<size_t> peak{0};
};

Counter &counter(int device) {
  static auto *counters = new std::array<Counter, kMaxDevices>();
  return (*counters)[static_cast<size_t>(device)];
}

// Live device allocations by address. Leaked: tensors may outlive static destruction.
struct Registry {
  std::mutex mutex;
  std::map<uintptr_t, Block *> blocks;
};

Registry &registry() {
  static auto *instance = new Registry();
  return *instance;
}

size_t rounded(size_t bytes) { return (bytes + kRounding - 1) / kRounding * kRounding; }

void charge(int device, size_t bytes) {
  Counter &use = counter(device);
  size_t now = use.current.fetch_add(bytes) + bytes;
  size_t limit = memoryLimit();
  if (limit && now > limit) {
    use.current.fetch_sub(bytes);
    size_t before = now - bytes;
    TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory. Tried to allocate ", formatSize(bytes),
                     " (GPU ", device, "; ", formatSize(limit), " total capacity; ", formatSize(before),
                     " already allocated; ", formatSize(limit > before ? limit - before : 0), " free; ",
                     formatSize(before), " reserved in total by PyTorch)");
  }
  size_t peak = use.peak.load();
  while (now > peak && !use.peak.compare_exchange_weak(peak, now)) {
  }
}

void freeBlock(void *data) {
  if (!data)
    return;
  Block *block = Block::of(data);
  {
    Registry &known = registry();
    std::lock_guard<std::mutex> lock(known.mutex);
    known.blocks.erase(reinterpret_cast<uintptr_t>(data));
  }
  counter(block->device).current.fetch_sub(rounded(block->bytes));
  if (c10::StorageImpl *view = block->view.load()) {
    // The view never frees the bytes; a kernel's leftover reference must not see them either.
    c10::intrusive_ptr<c10::StorageImpl>::reclaim(view);
  }
  block->~Block();
  std::free(block);
}

void *newBlock(size_t bytes, int device) {
  if (bytes == 0)
    return nullptr;
  charge(device, rounded(bytes));
  void *memory = nullptr;
  if (posix_memalign(&memory, kAlignment, sizeof(Block) + bytes) != 0) {
    counter(device).current.fetch_sub(rounded(bytes));
    TORCH_CHECK(false, "virtual-cuda: the host has no ", formatSize(bytes), " left for cuda:", device);
  }
  Block *block = new (memory) Block{bytes, device, {nullptr}};
  Registry &known = registry();
  std::lock_guard<std::mutex> lock(known.mutex);
  known.blocks.emplace(reinterpret_cast<uintptr_t>(block->data()), block);
  return block->data();
}

c10::DataPtr makeDataPtr(size_t bytes, int device, c10::Device label) {
  void *data = newBlock(bytes, device);
  return {data, data, &freeBlock, label};
}

class DeviceAllocator final : public c10::Allocator {
public:
  c10::DataPtr allocate(size_t bytes) const override {
    int device = currentDevice();
    return makeDataPtr(bytes, device, c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(device)));
  }
  c10::DeleterFnPtr raw_deleter() const override { return &freeBlock; }
};

class KernelAllocator final : public c10::Allocator {
public:
  c10::DataPtr allocate(size_t bytes) const override {
    return makeDataPtr(bytes, currentDevice(), c10::Device(c10::kCPU));
  }
  c10::DeleterFnPtr raw_deleter() const override { return &freeBlock; }
};

// Pinned addresses, for Tensor::is_pinned. Leaked like the block registry.
struct PinnedRegistry {
  std::mutex mutex;
  std::map<uintptr_t, size_t> ranges;
};

PinnedRegistry &pinnedRegistry() {
  static auto *instance = new PinnedRegistry();
  return *instance;
}

void freePinned(void *data) {
  if (!data)
    return;
  {
    PinnedRegistry &pinned = pinnedRegistry();
    std::lock_guard<std::mutex> lock(pinned.mutex);
    pinned.ranges.erase(reinterpret_cast<uintptr_t>(data));
  }
  std::free(data);
}

class PinnedAllocator final : public c10::Allocator {
public:
  c10::DataPtr allocate(size_t bytes) const override {
    void *data = nullptr;
    if (bytes) {
      TORCH_CHECK(posix_memalign(&data, kAlignment, bytes) == 0, "no memory for ", bytes, " pinned bytes");
      PinnedRegistry &pinned = pinnedRegistry();
      std::lock_guard<std::mutex> lock(pinned.mutex);
      pinned.ranges.emplace(reinterpret_cast<uintptr_t>(data), bytes);
    }
    return {data, data, &freePinned, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &freePinned; }
};

thread_local int kernelDevice = -1;
c10::Allocator *plainCpuAllocator = nullptr;

void freeEither(void *data) {
  if (deviceOfPointer(data) >= 0)
    freeBlock(data);
  else
    plainCpuAllocator->raw_deallocate(data);
}

// The process's CPU allocator: the one it replaced, except inside a KernelMemoryScope.
class SwitchingCpuAllocator final : public c10::Allocator {
public:
  c10::DataPtr allocate(size_t bytes) const override {
    if (kernelDevice < 0)
      return plainCpuAllocator->allocate(bytes);
    return makeDataPtr(bytes, kernelDevice, c10::Device(c10::kCPU));
  }
  c10::DeleterFnPtr raw_deleter() const override { return &freeEither; }
};

struct InstallAllocators {
  InstallAllocators() {
    plainCpuAllocator = c10::GetCPUAllocator();
    static SwitchingCpuAllocator cpu;
    c10::SetCPUAllocator(&cpu, /*priority=*/1);
    c10::SetAllocator(c10::kCUDA, deviceAllocator());
  }
} installAllocators;

void noDelete(void *) {}

c10::intrusive_ptr<c10::StorageImpl> makeView(c10::StorageImpl &storage) {
  void *data = storage.data();
  return c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), storage.nbytes(),
                                               c10::DataPtr(data, data, &noDelete, c10::Device(c10::kCPU)),
                                               kernelAllocator(), /*resizable=*/true);
}

} // namespace

std::string formatSize(size_t bytes) {
  char text[32];
  if (bytes <= 1024)
    std::snprintf(text, sizeof(text), "%zu bytes", bytes);
  else if (bytes <= 1048576)
    std::snprintf(text, sizeof(text), "%.2f KiB", static_cast<double>(bytes) / 1024);
  else if (bytes <= 1073741824)
    std::snprintf(text, sizeof(text), "%.2f MiB", static_cast<double>(bytes) / 1048576);
  else
    std::snprintf(text, sizeof(text), "%.2f GiB", static_cast<double>(bytes) / 1073741824);
  return text;
}

c10::Allocator *deviceAllocator() {
  static DeviceAllocator allocator;
  return &allocator;
}

c10::Allocator *kernelAllocator() {
  static KernelAllocator allocator;
  return &allocator;
}

c10::Allocator *pinnedAllocator() {
  static PinnedAllocator allocator;
  return &allocator;
}

bool isPinned(const void *pointer) {
  auto address = reinterpret_cast<uintptr_t>(pointer);
  PinnedRegistry &pinned = pinnedRegistry();
  std::lock_guard<std::mutex> lock(pinned.mutex);
  auto after = pinned.ranges.upper_bound(address);
  if (after == pinned.ranges.begin())
    return false;
  auto range = std::prev(after);
  return address - range->first < range->second;
}

int deviceOfPointer(const void *pointer) {
  auto address = reinterpret_cast<uintptr_t>(pointer);
  Registry &known = registry();
  std::lock_guard<std::mutex> lock(known.mutex);
  auto after = known.blocks.upper_bound(address);
  if (after == known.blocks.begin())
    return -1;
  auto entry = std::prev(after);
  return address - entry->first < entry->second->bytes ? entry->second->device : -1;
}

c10::intrusive_ptr<c10::StorageImpl> hostView(c10::StorageImpl &storage) {
  if (!storage.data() || storage.data_ptr().get_deleter() != &freeBlock ||
      storage.data_ptr().get_context() != storage.data())
    return makeView(storage);
  // One view per allocation, so that kernels recognise tensors that share memory.
  std::atomic<c10::StorageImpl *> &slot = Block::of(storage.data())->view;
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
  storage.data_ptr().unsafe_set_device(c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(index)));
  storage.set_allocator(deviceAllocator());
}

void adoptResized(c10::StorageImpl &storage, c10::StorageImpl &view) {
  if (view.data() == storage.data() && view.nbytes() == storage.nbytes())
    return;
  c10::Device device = storage.device();
  size_t bytes = view.nbytes();
  if (view.data() != storage.data()) {
    c10::DataPtr memory = view.set_data_ptr(c10::DataPtr(nullptr, c10::Device(c10::kCPU)));
    memory.unsafe_set_device(device);
    storage.set_data_ptr_noswap(std::move(memory));
  }
  storage.set_nbytes(bytes);
}

KernelMemoryScope::KernelMemoryScope(int device) : previous_(kernelDevice) { kernelDevice = device; }
KernelMemoryScope::~KernelMemoryScope() { kernelDevice = previous_; }

size_t peakMemory(int device) { return counter(device).peak.load(); }

} // namespace vcuda
