// Loads the virtual GPUs that fit the LibTorch of this process, and refuses what they cannot stand in for.
#include "Implementation.h"
#include "LibTorch.h"
#include "OwnFolder.h"
#include "Python.h"

#include <dlfcn.h>
#include <glob.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace vcuda {
namespace {

std::atomic<const Implementation *> loaded{nullptr};

// The program keeps its own devices, and its errors are recorded.
bool recordsOnly() {
  const char *value = std::getenv("VIRTUAL_GPU_RECORDS_ONLY");
  return value && std::strcmp(value, "1") == 0;
}

std::string libraryFor(const std::string &release) {
  return ownFolder() + (recordsOnly() ? "libdevice_records-" : "libvirtual_cuda-") + release + ".so";
}

// "2.13, 2.6": the releases that there are libraries for.
std::string releases() {
  const std::string pattern = libraryFor("*");
  glob_t found{};
  std::string list;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
    for (size_t i = 0; i < found.gl_pathc; ++i) {
      const std::string path = found.gl_pathv[i];
      list += (list.empty() ? "" : ", ") + path.substr(pattern.rfind('*'), path.size() + 1 - pattern.size());
    }
  globfree(&found);
  return list;
}

std::string missing(const std::string &version, const std::string &torch) {
  const std::string known = releases(), root = torch.substr(0, torch.rfind("/lib/"));
  return "this process uses LibTorch " + (version.empty() ? "of an unknown version" : version) + " (" +
         torch + "), and the " + (recordsOnly() ? "libraries for --explain in " : "virtual GPUs in ") +
         ownFolder() + " are for " + (known.empty() ? "none" : known) +
         "; build them for it (cmake -S runtime-shim -B BUILD -DTORCH_ROOT=" + root +
         "), or use a LibTorch that they are for";
}

// "" or why the virtual GPUs cannot be used.
std::string start() {
  for (const char *name : {"libtorch_cuda", "libtorch_hip"})
    if (const std::string real = loadedLibrary(name); !real.empty() && !recordsOnly())
      return "this process uses a LibTorch for real GPUs (" + real +
             "); run the program without virtual GPUs, or link the program with a CPU build of LibTorch";
  const std::string torch = loadedLibrary("libtorch_cpu.so");
  if (torch.empty())
    return "";
  const std::string version = versionOfLibTorch();
  const std::string release = version.substr(0, version.find('.', version.find('.') + 1));
  const std::string path = libraryFor(release);
  if (release.empty() || access(path.c_str(), F_OK) != 0)
    return missing(version, torch);
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return "cannot load " + path + " for LibTorch " + version + " (" + torch + "): " + dlerror();
  loaded = static_cast<const Implementation *>(dlsym(library, kImplementationName));
  return "";
}

// A program that is linked with LibTorch has it before anything of the program runs.
__attribute__((constructor)) void startAtOnce() {
  if (const char *problem = virtual_cuda_start()) {
    const std::string text =
        std::string(vcuda::recordsOnly() ? "device-run: " : "virtual-cuda: ") + problem + "\n";
    if (write(STDERR_FILENO, text.data(), text.size()) < 0)
      _exit(3);
    _exit(2);
  }
  watchPythonImports();
}

} // namespace

std::string ownFolder() {
  Dl_info own{};
  dladdr(reinterpret_cast<void *>(&ownFolder), &own);
  const std::string path = own.dli_fname ? own.dli_fname : "";
  return path.substr(0, path.rfind('/') + 1);
}

const Implementation *implementation() { return loaded.load(std::memory_order_acquire); }

} // namespace vcuda

__attribute__((visibility("default"))) const char *virtual_cuda_start() {
  static std::mutex mutex;
  static std::string problem;
  std::lock_guard<std::mutex> lock(mutex);
  if (!vcuda::implementation())
    problem = vcuda::start();
  return problem.empty() ? nullptr : problem.c_str();
}
