#include "HostMemory.h"

#include "Isolation.h"
#include "Settings.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <mutex>
#include <set>

namespace vcuda {

Arena arena;

namespace {

constexpr size_t kAlignment = 64;
// Freed ranges of at least this size give their pages back to the system.
constexpr size_t kReturnedBytes = size_t{1} << 20;
constexpr size_t kPage = 4096;

size_t roundedUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

[[noreturn]] void cannotIsolate(const char *what) {
  std::cerr << "virtual-cuda: VIRTUAL_GPU_ISOLATE=1 needs " << what << ": " << std::strerror(errno)
            << "; run without isolation, or raise the limit (ulimit -v)\n";
  std::_Exit(2);
}

// Best fit over one address range, with neighbours merged when they are freed.
class ArenaHeap {
public:
  ArenaHeap() {
    size_t size = map();
    addFree(arena.host, size);
  }

  void *allocate(size_t bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto best = bySize_.lower_bound({bytes, 0});
    if (best == bySize_.end())
      return nullptr;
    auto [size, address] = *best;
    bySize_.erase(best);
    byAddress_.erase(address);
    if (size > bytes)
      addFree(address + bytes, size - bytes);
    return reinterpret_cast<void *>(address);
  }

  void free(uintptr_t address, size_t bytes) {
    if (bytes >= kReturnedBytes)
      returnPages(address, bytes);
    std::lock_guard<std::mutex> lock(mutex_);
    auto after = byAddress_.lower_bound(address);
    if (after != byAddress_.end() && after->first == address + bytes) {
      bytes += after->second;
      after = removeFree(after);
    }
    if (after != byAddress_.begin()) {
      auto before = std::prev(after);
      if (before->first + before->second == address) {
        address = before->first;
        bytes += before->second;
        removeFree(before);
      }
    }
    addFree(address, bytes);
  }

private:
  using ByAddress = std::map<uintptr_t, size_t>;

  // Reserves addresses only; the system gives memory to what is written. Small limits on address space
  // get a smaller arena.
  size_t map() {
    int file = memfd_create("virtual-gpus", MFD_CLOEXEC);
    if (file < 0)
      cannotIsolate("memfd_create");
    for (size_t size = size_t{1} << 40; size >= (size_t{1} << 30); size /= 4) {
      if (ftruncate(file, static_cast<off_t>(size)) != 0)
        continue;
      void *visible = mmap(nullptr, size, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file, 0);
      if (visible == MAP_FAILED)
        continue;
      void *host = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
      if (host == MAP_FAILED) {
        munmap(visible, size);
        continue;
      }
      close(file);
      madvise(host, size, MADV_DONTDUMP);
      arena = {reinterpret_cast<uintptr_t>(visible), reinterpret_cast<uintptr_t>(host), size};
      return size;
    }
    cannotIsolate("2 GiB of address space");
  }

  static void returnPages(uintptr_t address, size_t bytes) {
    uintptr_t begin = roundedUp(address, kPage), end = (address + bytes) / kPage * kPage;
    if (begin < end)
      madvise(reinterpret_cast<void *>(begin), end - begin, MADV_REMOVE);
  }

  void addFree(uintptr_t address, size_t bytes) {
    byAddress_.emplace(address, bytes);
    bySize_.emplace(bytes, address);
  }

  ByAddress::iterator removeFree(ByAddress::iterator range) {
    bySize_.erase({range->second, range->first});
    return byAddress_.erase(range);
  }

  std::mutex mutex_;
  ByAddress byAddress_;
  std::set<std::pair<size_t, uintptr_t>> bySize_;
};

ArenaHeap &heap() {
  // Leaked: tensors may outlive static destruction.
  static auto *instance = new ArenaHeap();
  return *instance;
}

} // namespace

void *allocateHostMemory(size_t bytes) {
  if (isolated()) {
    // Each time, because programs install handlers of their own, which are called after this one.
    installFaultHandler();
    return heap().allocate(roundedUp(bytes, kAlignment));
  }
  void *memory = nullptr;
  return posix_memalign(&memory, kAlignment, bytes) == 0 ? memory : nullptr;
}

void freeHostMemory(void *memory, size_t bytes) {
  if (isolated())
    heap().free(reinterpret_cast<uintptr_t>(memory), roundedUp(bytes, kAlignment));
  else
    std::free(memory);
}

} // namespace vcuda
