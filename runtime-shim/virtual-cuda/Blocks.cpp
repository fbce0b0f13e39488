#include "Blocks.h"

#include "Compat.h"
#include "ErrorRecords.h"
#include "HostMemory.h"
#include "Origins.h"
#include "Settings.h"

#include <c10/util/Exception.h>

#include <array>
#include <cstdio>
#include <map>
#include <mutex>

namespace vcuda {
namespace {

// The granularity CUDA's caching allocator counts in.
constexpr size_t kRounding = 512;

struct Counter {
  std::atomic<size_t> current{0};
  std::atomic<size_t> peak{0};
  std::atomic<size_t> allocations{0};
};

Counter &counter(int device) {
  static auto *counters = new std::array<Counter, kMaxDevices>();
  return (*counters)[static_cast<size_t>(device)];
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

void charge(int device, size_t bytes) {
  Counter &use = counter(device);
  size_t now = use.current.fetch_add(bytes) + bytes;
  size_t limit = memoryLimit();
  if (limit && now > limit) {
    use.current.fetch_sub(bytes);
    std::string text = outOfMemoryText(device, bytes, now - bytes, limit);
    recordOutOfMemory(text);
    TORCH_CHECK_WITH(OutOfMemoryError, false, text);
  }
  use.allocations.fetch_add(1, std::memory_order_relaxed);
  size_t peak = use.peak.load();
  while (now > peak && !use.peak.compare_exchange_weak(peak, now)) {
  }
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
    counter(device).current.fetch_sub(rounded(bytes));
    TORCH_CHECK(false, "virtual-cuda: the host has no ", formatSize(bytes), " left for cuda:", device);
  }
  Block *block = new (memory) Block{bytes, device, {nullptr}};
  {
    Registry &known = registry();
    std::lock_guard<std::mutex> lock(known.mutex);
    known.blocks.emplace(reinterpret_cast<uintptr_t>(block->hostData()), block);
  }
  noteOrigin(block->hostData());
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
  counter(block->device).current.fetch_sub(rounded(bytes));
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
  Counter &use = counter(device);
  return {use.current.load(), use.peak.load(), use.allocations.load()};
}

void resetPeakMemory(int device) {
  Counter &use = counter(device);
  use.peak.store(use.current.load());
}

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
