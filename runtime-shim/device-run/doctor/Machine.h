//===- Machine.h - the state of the machine ---------------------*- C++ -*-===//
//
// What the doctor knows about the machine, as plain values: driver, GPUs, libraries and environment.
// inspect() collects it; the checks only read it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "base/Environment.h"
#include "doctor/Version.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace devicerun::doctor {

/// A GPU as the driver lists it.
struct Gpu {
  int index = 0; ///< in the driver's order, that of the PCI bus
  std::string name;
  std::string uuid;                             ///< "GPU-..."
  std::uint64_t memory = 0;                     ///< bytes in all
  std::uint64_t used = 0;                       ///< bytes that processes have now
  int capabilityMajor = 0, capabilityMinor = 0; ///< 0.0: not known
  bool prohibited = false;                      ///< compute mode "prohibited": no program may use it
  bool mig = false;                             ///< partitioned: programs see its instances only
};

/// The NVIDIA driver of this machine.
struct Driver {
  bool present = false;
  std::string version;         ///< "580.65.06"
  std::optional<Version> cuda; ///< the newest CUDA it runs
  std::vector<Gpu> gpus;
  std::string failure; ///< why an installed driver cannot be queried
};

/// A LibTorch that programs of this machine may use.
struct LibTorch {
  std::string folder; ///< the one with libtorch_cpu.so
  std::optional<Version> version;
  bool withCuda = false;
  std::optional<Version>
      cuda; ///< of the CUDA runtime it was built for; minor -1 when only the major is known
};

/// A Python package, from its dist-info folder.
struct Package {
  std::string name; ///< lower case, with underscores
  Version version;
  std::string folder; ///< the site-packages folder it is in
};

/// A release of PyTorch and one of Python that virtual GPUs are built for: "2.13", "3.11".
struct VirtualGpuBuild {
  std::string torch, python;
};

/// Everything the checks use.
struct Machine {
  Environment environment;
  Driver driver;
  std::optional<int> virtualGpus; ///< when this process runs on virtual GPUs
  std::vector<VirtualGpuBuild> virtualGpuBuilds;
  std::vector<LibTorch> torches;
  std::optional<Version> nccl; ///< of the libnccl.so.2 that the loader finds
  std::vector<Package> packages;
  std::vector<std::string> interfaces; ///< of the network
  std::uint64_t sharedMemory = 0;      ///< bytes of /dev/shm; 0: not known

  /// The variable's value; nothing when it is not set or empty.
  std::optional<std::string> variable(const std::string &name) const;
  /// The variable as a whole number; nothing when it is not set or no number.
  std::optional<int> number(const std::string &name) const;
  /// Ranks of the job that the environment describes; 1 without one.
  int worldSize() const;
  const Package *package(const std::string &name) const;
};

/// Examines this machine. `program`: the one whose LibTorch is used; empty: those in the usual places.
/// `sitePackages`: folders of Python packages to look into first.
Machine inspect(const std::string &program, const std::vector<std::string> &sitePackages);

/// Queries NVML (libnvidia-ml.so.1), else nvidia-smi, else the kernel module.
Driver askDriver();

/// The folders that Python finds packages in, by the environment and the usual places; Python is not run.
std::vector<std::string> sitePackagesFolders(const Environment &environment);
/// The packages of these folders that matter to distributed training.
std::vector<Package> findPackages(const std::vector<std::string> &folders);

/// LibTorch next to `program`, or where LD_LIBRARY_PATH, TORCH_ROOT, Python packages and the system have it.
std::vector<LibTorch> findLibTorch(const Environment &environment, const std::string &program,
                                   const std::vector<std::string> &sitePackages);
std::optional<Version> findNccl();

/// What lies beside the libvirtual_cuda.so that device-run would take; empty where it would find none.
std::vector<VirtualGpuBuild> findVirtualGpuBuilds(const Environment &environment);

} // namespace devicerun::doctor
