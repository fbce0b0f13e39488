// Streams and events of the runtime API. Work is finished when a call returns.
#include "Status.h"
#include "VirtualDevices.h"

#include <chrono>

using virtualdevices::report;

struct CUevent_st {
  bool timed;
  bool recorded;
  std::chrono::steady_clock::time_point when;
};

namespace {

cudaStream_t handleOf(const c10::Stream &stream) { return reinterpret_cast<cudaStream_t>(stream.id()); }

} // namespace

cudaError_t cudaStreamCreate(cudaStream_t *stream) {
  if (virtualdevices::count() == 0)
    return report(cudaErrorNoDevice);
  const auto &guard = virtualdevices::guard();
  *stream = handleOf(guard.getStreamFromGlobalPool(guard.getDevice(), /*isHighPriority=*/false));
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int) { return cudaStreamCreate(stream); }

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int, int) {
  return cudaStreamCreate(stream);
}

// Streams are numbers of a pool: there is nothing to free.
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamQuery(cudaStream_t) { return cudaSuccess; }

cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t function, void *userData) {
  if (!function)
    return report(cudaErrorInvalidValue);
  function(userData);
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t event, unsigned int) {
  return report(event ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventCreate(cudaEvent_t *event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags) {
  if (virtualdevices::count() == 0)
    return report(cudaErrorNoDevice);
  *event = new CUevent_st{(flags & cudaEventDisableTiming) == 0, false, {}};
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return report(event ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  if (!event)
    return report(cudaErrorInvalidResourceHandle);
  event->recorded = true;
  event->when = std::chrono::steady_clock::now();
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return report(event ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) { return cudaEventQuery(event); }

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end) {
  bool usable = start && end && start->recorded && end->recorded && start->timed && end->timed;
  if (!usable)
    return report(cudaErrorInvalidResourceHandle);
  *milliseconds = std::chrono::duration<float, std::milli>(end->when - start->when).count();
  return cudaSuccess;
}
