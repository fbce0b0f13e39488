// What the NVIDIA driver says: through NVML, else nvidia-smi, else the kernel module's own file.
#include "doctor/Machine.h"

#include "base/Command.h"
#include "base/Text.h"

#include <fmt/format.h>

#include <array>
#include <fstream>

#include <dlfcn.h>

namespace devicerun::doctor {
namespace {

// The part of nvml.h that is asked; the interface is versioned by the names of its functions.
namespace nvml {
using Device = void *;
struct Memory {
  unsigned long long total, free, used;
};
constexpr int kSuccess = 0;
constexpr int kComputeModeProhibited = 2;
constexpr unsigned kTextLength = 96;
} // namespace nvml

class Nvml {
public:
  Nvml() : library(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {}
  Nvml(const Nvml &) = delete;
  Nvml &operator=(const Nvml &) = delete;
  ~Nvml() {
    if (library)
      dlclose(library);
  }

  bool loaded() const { return library != nullptr; }

  /// Calls a function of the library; its status, or -1 when this driver does not have it.
  template <typename... Arguments> int call(const char *name, Arguments... arguments) const {
    auto *function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library, name));
    return function ? function(arguments...) : -1;
  }

  std::string message(int status) const {
    auto *function = reinterpret_cast<const char *(*)(int)>(dlsym(library, "nvmlErrorString"));
    const char *text = function ? function(status) : nullptr;
    return text ? text : fmt::format("NVML error {}", status);
  }

  std::string text(const char *name, nvml::Device device) const {
    std::array<char, nvml::kTextLength> buffer{};
    if (call(name, device, buffer.data(), nvml::kTextLength) != nvml::kSuccess)
      return "";
    return buffer.data();
  }

private:
  void *library;
};

Gpu describe(const Nvml &library, unsigned index) {
  Gpu gpu;
  gpu.index = static_cast<int>(index);
  nvml::Device device = nullptr;
  if (library.call("nvmlDeviceGetHandleByIndex_v2", index, &device) != nvml::kSuccess)
    return gpu;
  gpu.name = library.text("nvmlDeviceGetName", device);
  gpu.uuid = library.text("nvmlDeviceGetUUID", device);
  nvml::Memory memory{};
  if (library.call("nvmlDeviceGetMemoryInfo", device, &memory) == nvml::kSuccess) {
    gpu.memory = memory.total;
    gpu.used = memory.used;
  }
  library.call("nvmlDeviceGetCudaComputeCapability", device, &gpu.capabilityMajor, &gpu.capabilityMinor);
  int mode = 0;
  if (library.call("nvmlDeviceGetComputeMode", device, &mode) == nvml::kSuccess)
    gpu.prohibited = mode == nvml::kComputeModeProhibited;
  unsigned mig = 0, pending = 0;
  if (library.call("nvmlDeviceGetMigMode", device, &mig, &pending) == nvml::kSuccess)
    gpu.mig = mig == 1;
  return gpu;
}

std::optional<Driver> fromNvml() {
  Nvml library;
  if (!library.loaded())
    return std::nullopt;
  Driver driver;
  driver.present = true;
  if (int status = library.call("nvmlInit_v2"); status != nvml::kSuccess) {
    driver.failure = library.message(status);
    return driver;
  }
  std::array<char, nvml::kTextLength> version{};
  if (library.call("nvmlSystemGetDriverVersion", version.data(), nvml::kTextLength) == nvml::kSuccess)
    driver.version = version.data();
  int cuda = 0;
  if (library.call("nvmlSystemGetCudaDriverVersion_v2", &cuda) == nvml::kSuccess)
    driver.cuda = parseVersion(fmt::format("{}.{}", cuda / 1000, cuda % 1000 / 10));
  unsigned count = 0;
  library.call("nvmlDeviceGetCount_v2", &count);
  for (unsigned index = 0; index < count; ++index)
    driver.gpus.push_back(describe(library, index));
  library.call("nvmlShutdown");
  return driver;
}

std::optional<Driver> fromSmi() {
  std::string table =
      outputOf({"nvidia-smi", "--query-gpu=driver_version,name,uuid,memory.total,memory.used,compute_cap",
                "--format=csv,noheader,nounits"});
  Driver driver;
  for (const std::string &row : split(table, '\n')) {
    std::vector<std::string> cells = split(row, ',');
    if (cells.size() != 6 || !parseVersion(cells[0]))
      continue;
    driver.present = true;
    driver.version = trimmed(cells[0]);
    Gpu gpu;
    gpu.index = static_cast<int>(driver.gpus.size());
    gpu.name = trimmed(cells[1]);
    gpu.uuid = trimmed(cells[2]);
    constexpr std::uint64_t mebibyte = 1 << 20;
    gpu.memory = static_cast<std::uint64_t>(parseInteger(trimmed(cells[3])).value_or(0)) * mebibyte;
    gpu.used = static_cast<std::uint64_t>(parseInteger(trimmed(cells[4])).value_or(0)) * mebibyte;
    if (std::optional<Version> capability = parseVersion(cells[5])) {
      gpu.capabilityMajor = capability->major;
      gpu.capabilityMinor = std::max(0, capability->minor);
    }
    driver.gpus.push_back(gpu);
  }
  if (!driver.present)
    return std::nullopt;
  return driver;
}

std::optional<Driver> fromKernelModule() {
  // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 ..."
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  if (!std::getline(file, line))
    return std::nullopt;
  Driver driver;
  driver.present = true;
  for (const std::string &word : split(line, ' '))
    if (word.find('.') != std::string::npos && parseVersion(word)) {
      driver.version = word;
      break;
    }
  driver.failure = "the kernel module is loaded, but neither libnvidia-ml.so.1 nor nvidia-smi is here";
  return driver;
}

/// The newest CUDA of a driver branch, where the driver did not say: Table 1 of "CUDA Compatibility", Minor
/// Version Compatibility (docs.nvidia.com/deploy/cuda-compatibility).
std::optional<Version> cudaOfBranch(const std::string &driver) {
  std::optional<Version> version = parseVersion(driver);
  if (!version)
    return std::nullopt;
  for (auto [branch, cuda] : {std::pair{580, "13"}, {525, "12"}, {450, "11"}})
    if (version->major >= branch)
      return parseVersion(cuda);
  return std::nullopt;
}

} // namespace

Driver askDriver() {
  Driver driver;
  if (std::optional<Driver> found = fromNvml())
    driver = *found;
  if (!driver.present || !driver.failure.empty())
    for (auto *source : {fromSmi, fromKernelModule})
      if (std::optional<Driver> found = driver.present ? std::nullopt : source())
        driver = *found;
  if (!driver.cuda)
    driver.cuda = cudaOfBranch(driver.version);
  return driver;
}

} // namespace devicerun::doctor
