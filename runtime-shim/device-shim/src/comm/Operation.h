//===- Operation.h - a collective operation in progress ---------*- C++ -*-===//
//
// A collective operation under way: the work c10d does, and what is left to do with its result.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "base/Compat.h"
#include "comm/Liveness.h"

#include <ATen/core/Tensor.h>

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace device_shim::detail {

class Operation {
public:
  /// `work` is null for one that is already done. `keep` are the tensors it uses; `finish` runs in wait().
  Operation(const char *name, c10::intrusive_ptr<c10d::Work> work, std::vector<at::Tensor> keep,
            std::function<void()> finish);

  /// Gloo's works are waited for in slices, so that the death of a rank is noticed between them; NCCL's
  /// wait() blocks the current stream of `device` and not the host.
  void watch(std::shared_ptr<Liveness> liveness, bool blocksHost, std::chrono::milliseconds timeout,
             at::Device device);

  void wait();

private:
  void waitOnHost();
  void waitOnDevice();
  [[noreturn]] void failed(const std::exception &error) const;

  const char *name;
  c10::intrusive_ptr<c10d::Work> work;
  std::vector<at::Tensor> keep;
  std::function<void()> finish;
  std::shared_ptr<Liveness> liveness;
  bool blocksHost = false;
  std::chrono::milliseconds timeout{0};
  int64_t number = 0; ///< which of this rank's operations it is
  at::Device device = at::kCPU;
  bool done = false;
};

} // namespace device_shim::detail
