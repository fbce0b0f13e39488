#include "Blocks.h"

#include "Compat.h"
#include "ErrorRecords.h"
#include "HostMemory.h"
#include "Origins.h"
#include "OthersDevices.h"
#include "Settings.h"

#include <c10/util/Exception.h>

#include <unistd.h>

#include <array>
#include <cstdio>
#include <map>
#include <mutex>

namespace vcuda {
namespace {

// The granularity CUDA's caching allocator counts in.
constexpr size_t kRounding = 512;

// Counts bytes, or allocations.
class Counter {
public:
  size_t add(size_t amount) { return current_.fetch_add(amount) + amount; }
  void remove(size_t amount) { current_.fetch_sub(amount); }
  /// What was added is there to stay until it is removed.
  void confirm(size_t amount, size_t now) {
    ever_.fetch_add(amount, std::memory_order_relaxed);
    raise(peak_, now);
    raise(highest_, now);
  }
  Amount read() const {
    size_t ever = ever_.load(), current = current_.load();
    return {current, peak_.load(), ever - forgottenAllocated_.load(), ever - current - forgottenFreed_.load(),
            highest_.load()};
  }
  void resetPeak() { peak_.store(current_.load()); }
  void resetAccumulated() {
    size_t ever = ever_.load();
    forgottenAllocated_.store(ever);
    forgottenFreed_.store(ever - current_.load());
  }

private:
  static void raise(std::atomic<size_t> &peak, size_t now) {
    size_t known = peak.load();
    while (now > known && !peak.compare_exchange_weak(known, now)) {
    }
  }

  std::atomic<size_t> current_{0};
  std::atomic<size_t> peak_{0};
  std::atomic<size_t> highest_{0};
  std::atomic<size_t> ever_{0};
  std::atomic<size_t> forgottenAllocated_{0};
  std::atomic<size_t> forgottenFreed_{0};
};

struct DeviceMemory {
  Counter bytes;
  Counter allocations;
  std::atomic<size_t> outOfMemory{0};
  std::atomic<double> fraction{1};
};

DeviceMemory &memoryOf(int device) {
  static auto *all = new std::array<DeviceMemory, kMaxDevices>();
  return (*all)[static_cast<size_t>(device)];
}

// Live device allocations by host address. Leaked: tensors may outlive static destruction.
struct Registry {
  std::mutex mutex;
  std::map<uintptr_t, Block *> blocks;
};

Registry &registry() {
  static auto *instance = new Registry();
  return *instance;
}

size_t rounded(size_t bytes) { return (bytes + kRounding - 1) / kRounding * kRounding; }

std::string outOfMemoryText(int device, size_t bytes, size_t used, size_t limit) {
  size_t free = limit > used ? limit - used : 0;
  if (kLongOutOfMemoryText)
    return c10::str("CUDA out of memory. Tried to allocate ", formatSize(bytes), ". GPU ", device,
                    " has a total capacity of ", formatSize(limit), " of which ", formatSize(free),
                    " is free. Including non-PyTorch memory, this process has ", formatSize(used),
                    " memory in use. Of the allocated memory ", formatSize(used),
                    " is allocated by PyTorch, and ", formatSize(0),
                    " is reserved by PyTorch but unallocated.");
  return c10::str("CUDA out of memory. Tried to allocate ", formatSize(bytes), " (GPU ", device, "; ",
                  formatSize(limit), " total capacity; ", formatSize(used), " already allocated; ",
                  formatSize(free), " free; ", formatSize(used), " reserved in total by PyTorch)");
}

// 0: no limit but the host's memory.
size_t chargedLimit(int device) {
  const bool limited = memoryLimit() || memoryOf(device).fraction.load(std::memory_order_relaxed) < 1;
  return limited ? usableMemory(device) : 0;
}

void charge(int device, size_t bytes) {
  DeviceMemory &use = memoryOf(device);
  size_t now = use.bytes.add(bytes);
  if (size_t limit = chargedLimit(device); limit && now > limit) {
    use.bytes.remove(bytes);
    use.outOfMemory.fetch_add(1);
    std::string text = outOfMemoryText(device, bytes, now - bytes, limit);
    recordOutOfMemory(text);
    TORCH_CHECK_WITH(OutOfMemoryError, false, text);
  }
  use.bytes.confirm(bytes, now);
  use.allocations.confirm(1, use.allocations.add(1));
}

void discharge(int device, size_t bytes) {
  memoryOf(device).bytes.remove(bytes);
  memoryOf(device).allocations.remove(1);
}

BlockInfo lookUp(const Registry &known, uintptr_t address) {
  auto after = known.blocks.upper_bound(address);
  if (after == known.blocks.begin())
    return {-1, 0, 0};
  const auto &[begin, block] = *std::prev(after);
  size_t offset = address - begin;
  return offset < block->bytes ? BlockInfo{block->device, block->bytes, offset} : BlockInfo{-1, 0, 0};
}

uintptr_t key(const void *pointer) { return reinterpret_cast<uintptr_t>(hostAddress(pointer)); }

} // namespace

Block *blockAt(void *data) { return static_cast<Block *>(hostAddress(data)) - 1; }

void *newBlock(size_t bytes, int device) {
  if (bytes == 0)
    return nullptr;
  charge(device, rounded(bytes));
  void *memory = allocateHostMemory(sizeof(Block) + bytes);
  if (!memory) {
    discharge(device, rounded(bytes));
    TORCH_CHECK(false, "virtual-cuda: the host has no ", formatSize(bytes), " left for cuda:", device);
  }
  Block *block = new (memory) Block{bytes, device, {nullptr}};
  {
    Registry &known = registry();
    std::lock_guard<std::mutex> lock(known.mutex);
    known.blocks.emplace(reinterpret_cast<uintptr_t>(block->hostData()), block);
  }
  noteOrigin(block->hostData());
  noteAllocation(device, bytes);
  return block->hostData();
}

void freeBlock(void *data) {
  if (!data)
    return;
  Block *block = blockAt(data);
  {
    Registry &known = registry();
    std::lock_guard<std::mutex> lock(known.mutex);
    known.blocks.erase(reinterpret_cast<uintptr_t>(block->hostData()));
  }
  forgetOrigin(block->hostData());
  size_t bytes = block->bytes;
  discharge(block->device, rounded(bytes));
  if (c10::StorageImpl *view = block->view.load()) {
    // The view never frees the bytes; a kernel's leftover reference must not see them either.
    c10::intrusive_ptr<c10::StorageImpl>::reclaim(view);
  }
  block->~Block();
  freeHostMemory(block, sizeof(Block) + bytes);
}

BlockInfo findBlock(const void *pointer) {
  Registry &known = registry();
  std::lock_guard<std::mutex> lock(known.mutex);
  return lookUp(known, key(pointer));
}

BlockInfo findBlockInSignal(const void *pointer) {
  Registry &known = registry();
  std::unique_lock<std::mutex> lock(known.mutex, std::try_to_lock);
  return lock ? lookUp(known, key(pointer)) : BlockInfo{-1, 0, 0};
}

MemoryUse memoryUse(int device) {
  const DeviceMemory &use = memoryOf(device);
  return {use.bytes.read(), use.allocations.read(), use.outOfMemory.load()};
}

void resetPeakMemory(int device) {
  memoryOf(device).bytes.resetPeak();
  memoryOf(device).allocations.resetPeak();
}

void resetAccumulatedMemory(int device) {
  memoryOf(device).bytes.resetAccumulated();
  memoryOf(device).allocations.resetAccumulated();
  memoryOf(device).outOfMemory = 0;
}

size_t totalMemory() {
  static const size_t host =
      static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGE_SIZE));
  return memoryLimit() ? memoryLimit() : host;
}

size_t usableMemory(int device) {
  return static_cast<size_t>(static_cast<double>(totalMemory()) * memoryFraction(device));
}

void setMemoryFraction(int device, double fraction) { memoryOf(device).fraction = fraction; }
double memoryFraction(int device) { return memoryOf(device).fraction; }

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

} // namespace vcuda
