#include "Status.h"

#include "VirtualDevices.h"

namespace {

thread_local cudaError_t last = cudaSuccess;

struct Text {
  cudaError_t error;
  const char *name;
  const char *text;
};

const Text kTexts[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorPeerAccessAlreadyEnabled, "cudaErrorPeerAccessAlreadyEnabled",
     "peer access is already enabled"},
    {cudaErrorHostMemoryAlreadyRegistered, "cudaErrorHostMemoryAlreadyRegistered",
     "part or all of the requested memory range is already mapped"},
    {cudaErrorHostMemoryNotRegistered, "cudaErrorHostMemoryNotRegistered",
     "pointer does not correspond to a registered memory region"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

const Text *find(cudaError_t error) {
  for (const Text &known : kTexts)
    if (known.error == error)
      return &known;
  return nullptr;
}

} // namespace

namespace virtualdevices {

cudaError_t report(cudaError_t error) {
  if (error != cudaSuccess)
    last = error;
  return error;
}

cudaError_t checkDevice(int device) {
  if (count() == 0)
    return cudaErrorNoDevice;
  return device < 0 || device >= count() ? cudaErrorInvalidDevice : cudaSuccess;
}

} // namespace virtualdevices

cudaError_t cudaGetLastError() {
  cudaError_t error = last;
  last = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError() { return last; }

const char *cudaGetErrorString(cudaError_t error) {
  const Text *known = find(error);
  return known ? known->text : "unrecognized error code";
}

const char *cudaGetErrorName(cudaError_t error) {
  const Text *known = find(error);
  return known ? known->name : "unrecognized error code";
}
