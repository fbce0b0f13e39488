#include "doctor/Checks.h"

#include <fmt/format.h>

#include <array>

namespace devicerun::doctor {
namespace {

const char *const kTopicDriver = "driver";
const char *const kTopicTorch = "libtorch";

/// The oldest driver branch for a CUDA release: Table 1 of "CUDA Compatibility", Minor Version Compatibility
/// (docs.nvidia.com/deploy/cuda-compatibility).
int oldestDriver(int cudaMajor) { return cudaMajor >= 13 ? 580 : cudaMajor == 12 ? 525 : 450; }

/// The GPUs a CUDA release makes code for. Oldest: CUDA 12 dropped Kepler, 13 everything before Turing
/// (release notes of both). Newest: Hopper came with 11.8, Blackwell with 12.8.
struct Generation {
  int major;
  int cudaMajor, cudaMinor;
};
constexpr std::array<Generation, 4> kFirstCuda = {{{9, 11, 8}, {10, 12, 8}, {11, 13, 0}, {12, 12, 8}}};

std::string describe(const LibTorch &torch) {
  return fmt::format("LibTorch {} in {}", torch.version ? torch.version->text : "of unknown version",
                     torch.folder);
}

std::string text(const Version &cuda) {
  return cuda.minor < 0 ? std::to_string(cuda.major) : fmt::format("{}.{}", cuda.major, cuda.minor);
}

void checkDriver(const Machine &machine, Diagnosis &diagnosis) {
  const Driver &driver = machine.driver;
  if (machine.virtualGpus) {
    diagnosis.ok(
        kTopicDriver, "virtual-gpus",
        fmt::format("this process runs on {} virtual GPUs; no driver is needed", *machine.virtualGpus));
    return;
  }
  if (!driver.present) {
    diagnosis.warn(kTopicDriver, "no-driver", "no NVIDIA driver: programs run on the CPU or on virtual GPUs",
                   "on a machine with GPUs install the driver, and start containers with access to them "
                   "(docker run --gpus all); without GPUs use device-run --virtual-gpus N");
    return;
  }
  if (!driver.failure.empty()) {
    diagnosis.problem(kTopicDriver, "driver-failure",
                      fmt::format("the NVIDIA driver {} cannot be asked: {}", driver.version, driver.failure),
                      "after an update of the driver restart the machine; in a container, start it again so "
                      "that it gets the libraries of the driver that runs");
    return;
  }
  diagnosis.ok(kTopicDriver, "driver",
               fmt::format("NVIDIA driver {}{}", driver.version,
                           driver.cuda ? fmt::format(", runs CUDA up to {}", text(*driver.cuda)) : ""));
}

void checkAgainstDriver(const LibTorch &torch, const Machine &machine, Diagnosis &diagnosis) {
  const Driver &driver = machine.driver;
  if (!torch.cuda)
    return;
  if (!driver.present) {
    diagnosis.problem(kTopicTorch, "cuda-build-without-driver",
                      fmt::format("{} is a build for CUDA {}, but there is no NVIDIA driver", describe(torch),
                                  text(*torch.cuda)),
                      fmt::format("install a driver from {} on, or a CPU build of LibTorch",
                                  oldestDriver(torch.cuda->major)));
    return;
  }
  if (!driver.cuda)
    return;
  if (torch.cuda->major > driver.cuda->major)
    diagnosis.problem(kTopicTorch, "driver-too-old",
                      fmt::format("{} is a build for CUDA {}, but driver {} runs CUDA {} at most",
                                  describe(torch), text(*torch.cuda), driver.version, text(*driver.cuda)),
                      fmt::format("update the driver to {} or newer, or take a build for CUDA {}",
                                  oldestDriver(torch.cuda->major), driver.cuda->major));
  else if (torch.cuda->major == driver.cuda->major && driver.cuda->minor >= 0 &&
           torch.cuda->minor > driver.cuda->minor)
    diagnosis.warn(
        kTopicTorch, "minor-version-compatibility",
        fmt::format("{} is a build for CUDA {}, newer than the {} of driver {}: compiled kernels run, "
                    "those the driver has to compile do not",
                    describe(torch), text(*torch.cuda), text(*driver.cuda), driver.version),
        "update the driver if a program fails with 'unsupported toolchain' or 'PTX'");
}

void checkAgainstGpus(const LibTorch &torch, const Machine &machine, Diagnosis &diagnosis) {
  if (!torch.cuda)
    return;
  for (const Gpu &gpu : machine.driver.gpus) {
    if (gpu.capabilityMajor == 0)
      continue;
    const auto capability = std::pair(gpu.capabilityMajor, gpu.capabilityMinor);
    const std::string what = fmt::format("GPU {} ({}) has compute capability {}.{}", gpu.index, gpu.name,
                                         capability.first, capability.second);
    const auto oldest = torch.cuda->major >= 13   ? std::pair(7, 5)
                        : torch.cuda->major == 12 ? std::pair(5, 0)
                                                  : std::pair(3, 5);
    if (capability < oldest) {
      diagnosis.problem(kTopicTorch, "gpu-too-old",
                        fmt::format("{}, which CUDA {} of {} does not support any more", what,
                                    torch.cuda->major, describe(torch)),
                        fmt::format("take a build of LibTorch for CUDA {}", torch.cuda->major - 1));
      return;
    }
    for (const Generation &generation : kFirstCuda)
      if (gpu.capabilityMajor == generation.major && torch.cuda->minor >= 0 &&
          std::pair(torch.cuda->major, torch.cuda->minor) <
              std::pair(generation.cudaMajor, generation.cudaMinor)) {
        diagnosis.problem(kTopicTorch, "gpu-too-new",
                          fmt::format("{}, which CUDA {} of {} does not know yet ('no kernel image is "
                                      "available')",
                                      what, text(*torch.cuda), describe(torch)),
                          fmt::format("take a build of LibTorch for CUDA {}.{} or newer",
                                      generation.cudaMajor, generation.cudaMinor));
        return;
      }
  }
}

void checkTorches(const Machine &machine, Diagnosis &diagnosis) {
  if (machine.torches.empty()) {
    diagnosis.warn(kTopicTorch, "no-libtorch", "no LibTorch was found",
                   "name the program that uses it with --program, or set TORCH_ROOT to LibTorch's folder");
    return;
  }
  for (const LibTorch &torch : machine.torches) {
    diagnosis.ok(kTopicTorch, "libtorch",
                 describe(torch) + (torch.withCuda && torch.cuda ? ", for CUDA " + text(*torch.cuda)
                                    : torch.withCuda             ? ", for CUDA"
                                                                 : ", for the CPU"));
    if (torch.withCuda && machine.virtualGpus)
      diagnosis.problem(kTopicTorch, "virtual-with-cuda-build",
                        "virtual GPUs do not work with a CUDA build of LibTorch",
                        "use a CPU build, or leave out --virtual-gpus");
    if (!torch.withCuda && machine.driver.present && machine.driver.failure.empty() &&
        !machine.driver.gpus.empty() && machine.torches.size() == 1)
      diagnosis.warn(
          kTopicTorch, "cpu-build-with-gpus",
          "this machine has GPUs, but its LibTorch is a build for the CPU: cuda::is_available() is "
          "false",
          "install a CUDA build of LibTorch to use the GPUs");
    if (!machine.virtualGpus) {
      checkAgainstDriver(torch, machine, diagnosis);
      checkAgainstGpus(torch, machine, diagnosis);
    }
  }
}

void checkNccl(const Machine &machine, Diagnosis &diagnosis) {
  constexpr const char *topic = "nccl";
  const Package *wheel = nullptr;
  for (const Package &package : machine.packages)
    if (!wheel && package.name.rfind("nvidia_nccl_cu", 0) == 0)
      wheel = &package;
  if (wheel)
    diagnosis.ok(topic, "nccl-package",
                 fmt::format("NCCL {} ({} in {})", wheel->version.text, wheel->name, wheel->folder));
  if (machine.nccl)
    diagnosis.ok(topic, "nccl-library", fmt::format("NCCL {} (libnccl.so.2)", machine.nccl->text));
  const LibTorch *cuda = nullptr;
  for (const LibTorch &torch : machine.torches)
    if (!cuda && torch.withCuda)
      cuda = &torch;
  if (!cuda)
    return;
  if (wheel && cuda->cuda && parseVersion(wheel->name.substr(14)) &&
      parseVersion(wheel->name.substr(14))->major != cuda->cuda->major)
    diagnosis.problem(
        topic, "nccl-other-cuda",
        fmt::format("{} is for another CUDA than LibTorch's {}", wheel->name, text(*cuda->cuda)),
        fmt::format("install nvidia-nccl-cu{} in its place", cuda->cuda->major));
  // The loader takes the folder of the variable first, before the one LibTorch was linked with.
  if (wheel && machine.nccl && machine.variable("LD_LIBRARY_PATH") && *machine.nccl < wheel->version)
    diagnosis.warn(topic, "nccl-older-than-wheel",
                   fmt::format("LD_LIBRARY_PATH leads to NCCL {}, older than the {} LibTorch came with",
                               machine.nccl->text, wheel->version.text),
                   "take that folder out of LD_LIBRARY_PATH");
  if (!wheel && !machine.nccl)
    diagnosis.ok(topic, "nccl-built-in", "no NCCL library of its own; LibTorch may have it built in");
}

} // namespace

void checkLibraries(const Machine &machine, Diagnosis &diagnosis) {
  checkDriver(machine, diagnosis);
  checkTorches(machine, diagnosis);
  checkNccl(machine, diagnosis);
}

} // namespace devicerun::doctor
