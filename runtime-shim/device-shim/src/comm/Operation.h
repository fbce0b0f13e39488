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
#include <future>
#include <memory>
#include <string>
#include <vector>

namespace device_shim::detail {

class Operation {
public:
  using Launched = std::shared_future<c10::intrusive_ptr<c10d::Work>>;
  struct Settings {
    const char *name = "";
    Standstill::Place place;            ///< among the operations of all ranks
    std::shared_ptr<Liveness> liveness; ///< may be null
    /// Gloo's works are waited for in slices, so that the death of a rank is noticed between them; NCCL's
    /// wait() blocks the current stream of `device` and not the host.
    bool blocksHost = false;
    std::chrono::milliseconds timeout{0};
    at::Device device = at::kCPU;
  };

  /// `launched` has the work when it has started. `keep` are the tensors it uses; `finish` runs in wait().
  Operation(Settings settings, Launched launched, std::vector<at::Tensor> keep, std::function<void()> finish);

  void wait();

private:
  void waitForLaunch();
  void waitOnDevice(c10d::Work &work);
  [[noreturn]] void failed(const std::exception &error) const;

  Settings settings;
  Launched launched;
  std::vector<at::Tensor> keep;
  std::function<void()> finish;
  int64_t number = 0; ///< which of this rank's operations it is
  bool done = false;
};

} // namespace device_shim::detail
