#include "ManagedMemory.h"

#include "Status.h"
#include "VirtualDevices.h"

#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>

namespace {

// Leaked: memory may be freed while static objects are torn down.
struct Registry {
  std::mutex mutex;
  std::map<uintptr_t, size_t> ranges;
};

Registry &registry() {
  static auto *instance = new Registry();
  return *instance;
}

} // namespace

namespace virtualdevices {

bool isManaged(const void *pointer) {
  auto address = reinterpret_cast<uintptr_t>(pointer);
  Registry &managed = registry();
  std::lock_guard<std::mutex> lock(managed.mutex);
  auto after = managed.ranges.upper_bound(address);
  if (after == managed.ranges.begin())
    return false;
  auto range = std::prev(after);
  return address - range->first < range->second;
}

void forgetManaged(const void *pointer) {
  Registry &managed = registry();
  std::lock_guard<std::mutex> lock(managed.mutex);
  managed.ranges.erase(reinterpret_cast<uintptr_t>(pointer));
}

} // namespace virtualdevices

cudaError_t cudaMallocManaged(void **pointer, size_t bytes, unsigned int flags) {
  if (bytes == 0 || (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost))
    return virtualdevices::report(cudaErrorInvalidValue);
  if (cudaError_t error = cudaMalloc(pointer, bytes))
    return error;
  *pointer = virtualdevices::hostAddress(*pointer);
  Registry &managed = registry();
  std::lock_guard<std::mutex> lock(managed.mutex);
  managed.ranges.emplace(reinterpret_cast<uintptr_t>(*pointer), bytes);
  return cudaSuccess;
}
