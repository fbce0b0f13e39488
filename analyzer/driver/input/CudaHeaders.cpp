#include "analyzer/driver/input/CudaHeaders.h"

#include "DeviceTidyConfig.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"

#include <algorithm>
#include <mutex>

namespace devicetidy::driver {
namespace {

namespace fs = llvm::sys::fs;

constexpr llvm::StringLiteral runtimeHeader("cuda_runtime_api.h");

// Looks for each file on disk once.
bool holds(const std::string &directory, llvm::StringRef header) {
  static std::mutex mutex;
  static llvm::StringMap<bool> known;
  const std::string file = directory + "/" + header.str();
  const std::lock_guard<std::mutex> lock(mutex);
  const auto [entry, isNew] = known.try_emplace(file, false);
  if (isNew)
    entry->second = fs::exists(file);
  return entry->second;
}

std::string findStandIns() {
  static int anchor; // in this program, wherever it is
  llvm::SmallString<256> installed(fs::getMainExecutable(nullptr, &anchor));
  llvm::sys::path::remove_filename(installed);
  llvm::sys::path::append(installed, DEVICE_TIDY_INSTALLED_CUDA_STUBS);
  llvm::sys::path::remove_dots(installed, /*remove_dot_dot=*/true);
  for (const std::string &directory : {installed.str().str(), std::string(DEVICE_TIDY_CUDA_STUBS)})
    if (holds(directory, runtimeHeader))
      return directory;
  return {};
}

} // namespace

const std::string &cudaStandIns() {
  static const std::string directory = findStandIns();
  return directory;
}

bool findsCuda(const std::vector<std::string> &directories) {
  std::vector<std::string> all = {"/usr/local/include", "/usr/include"};
  for (const char *name : {"CPATH", "CPLUS_INCLUDE_PATH"}) {
    llvm::SmallVector<llvm::StringRef> added;
    const std::string value = llvm::sys::Process::GetEnv(name).value_or("");
    llvm::StringRef(value).split(added, ':', -1, /*KeepEmpty=*/false);
    for (const llvm::StringRef each : added)
      all.push_back(each.str());
  }
  all.insert(all.end(), directories.begin(), directories.end());
  return std::any_of(all.begin(), all.end(),
                     [](const std::string &directory) { return holds(directory, runtimeHeader); });
}

bool hasStandIns(const std::string &directory) {
  static constexpr llvm::StringLiteral headers[] = {runtimeHeader, "c10/cuda/CUDAGuard.h", "cub/cub.cuh",
                                                    "thrust/version.h"};
  return llvm::any_of(headers, [&](llvm::StringRef header) { return holds(directory, header); });
}

} // namespace devicetidy::driver
