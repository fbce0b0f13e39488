//===- Checks.h - the checks of device-run doctor ---------------*- C++ -*-===//
//
// One function per topic. Each looks at the machine or at a file and adds lines to the diagnosis.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "doctor/Diagnosis.h"
#include "doctor/Machine.h"
#include "doctor/VisibleDevices.h"

#include <string>
#include <vector>

namespace devicerun::doctor {

/// Driver, LibTorch, CUDA and NCCL: are they there, and do they fit each other and the GPUs?
void checkLibraries(const Machine &machine, Diagnosis &diagnosis);

/// The GPUs a program sees, under which numbers, and whether every local rank has one.
void checkDevices(const Machine &machine, const VisibleDevices &visible, Diagnosis &diagnosis);

/// RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and similar variables: complete, consistent, reachable.
void checkDistributed(const Machine &machine, Diagnosis &diagnosis);

/// NCCL_*, TORCH_NCCL_*, GLOO_* and the shared memory NCCL uses.
void checkCommunication(const Machine &machine, Diagnosis &diagnosis);

/// DeepSpeed 0.14.1 and 0.14.2 scale gradients in host memory by a tensor on the GPU when they are clipped
/// (deepspeedai/DeepSpeed pull requests 5256, which brought it, 5461 and 5504, which repaired it).
bool hasClippingBug(const Package &package);

/// The environments of Python that have PyTorch: which one, for what, and with which other packages.
void checkPython(const Machine &machine, Diagnosis &diagnosis);

/// Installed Python packages with known bugs.
void checkPackages(const Machine &machine, Diagnosis &diagnosis);

/// Configuration files: DeepSpeed's JSON, accelerate's, and those that name a device_map (JSON or YAML); also
/// the files that these name for DeepSpeed. A DeepSpeed configuration among them makes the job a distributed
/// one for the others. Throws RunError(ExitUsage) when one cannot be read.
void checkConfigFiles(const std::vector<std::string> &paths, const Machine &machine,
                      const VisibleDevices &visible, Diagnosis &diagnosis);

} // namespace devicerun::doctor
