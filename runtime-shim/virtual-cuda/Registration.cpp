// Puts the kernels into the dispatcher when the library is loaded.
#include "Blocks.h"
#include "Kernels.h"
#include "Records.h"
#include "RunningOps.h"
#include "Settings.h"
#include "Trace.h"
#include "UncaughtExceptions.h"

#include <cstdlib>
#include <iostream>

namespace vcuda {
namespace {

void reportPeakMemory() {
  recordMemory();
  if (!reportsAtExit())
    return;
  for (int device = 0; device < deviceCount(); ++device)
    std::cerr << "virtual-cuda: cuda:" << device << " peak memory "
              << formatSize(memoryUse(device).bytes.highest) << "\n";
}

torch::Library *makeLibrary(c10::DispatchKey key) {
  return new torch::Library(torch::Library::IMPL, "aten", key, __FILE__, __LINE__);
}

struct Registered {
  // Never destroyed: programs run operators while static objects are torn down.
  torch::Library *dense = makeLibrary(c10::DispatchKey::CUDA);
  torch::Library *sparse = makeLibrary(c10::DispatchKey::SparseCUDA);
  torch::Library *autograd = makeLibrary(c10::DispatchKey::AutogradCUDA);

  Registered() {
    registerMemoryKernels(*dense);
    registerRecurrentKernels(*dense);
    registerGpuOnlyKernels(*dense);
    registerDropoutKernel(*dense);
    registerSyncBatchNorm(*dense);
    registerAttention(*dense);
    registerAttention(*autograd);
    registerCpuBackedKernels(*dense);
    registerSparseKernels(*sparse);
    startRecords();
    watchOperators();
    watchUncaughtExceptions();
    std::atexit(&reportPeakMemory);
  }
} const registered;

} // namespace
} // namespace vcuda
