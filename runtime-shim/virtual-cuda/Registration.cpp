// Puts the kernels into the dispatcher when the library is loaded, and refuses to be loaded beside a
// real CUDA build of LibTorch.
#include "Blocks.h"
#include "Kernels.h"
#include "Records.h"
#include "RunningOps.h"
#include "Settings.h"
#include "Trace.h"
#include "UncaughtExceptions.h"

#include <link.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <iostream>

namespace vcuda {
namespace {

int noteCudaLibrary(dl_phdr_info *object, size_t, void *found) {
  const char *slash = std::strrchr(object->dlpi_name, '/');
  const char *name = slash ? slash + 1 : object->dlpi_name;
  if (std::strncmp(name, "libtorch_cuda", 13) != 0)
    return 0;
  *static_cast<const char **>(found) = object->dlpi_name;
  return 1;
}

// Before any other initializer of this library: both builds would register the same device type.
__attribute__((constructor(101))) void refuseRealCuda() {
  const char *found = nullptr;
  dl_iterate_phdr(&noteCudaLibrary, &found);
  if (!found)
    return;
  const char *hint = "; run the program without it, or link the program with a CPU build of LibTorch\n";
  std::string text =
      std::string("virtual-cuda: this process uses a real CUDA LibTorch (") + found + ")" + hint;
  if (write(STDERR_FILENO, text.data(), text.size()) < 0)
    _exit(3);
  _exit(2);
}

void reportPeakMemory() {
  recordMemory();
  if (!reportsAtExit())
    return;
  for (int device = 0; device < deviceCount(); ++device)
    std::cerr << "virtual-cuda: cuda:" << device << " peak memory " << formatSize(memoryUse(device).peak)
              << "\n";
}

torch::Library *makeLibrary(c10::DispatchKey key) {
  return new torch::Library(torch::Library::IMPL, "aten", key, __FILE__, __LINE__);
}

struct Registered {
  // Never destroyed: programs run operators while static objects are torn down.
  torch::Library *dense = makeLibrary(c10::DispatchKey::CUDA);
  torch::Library *sparse = makeLibrary(c10::DispatchKey::SparseCUDA);

  Registered() {
    registerMemoryKernels(*dense);
    registerRecurrentKernels(*dense);
    registerGpuOnlyKernels(*dense);
    registerDropoutKernel(*dense);
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
