//===- ResultsPass.h - backward passes through a wrapper --------*- C++ -*-===//
//
// Whether a backward pass is at work that came through results of a wrapper's forward().
//
//===----------------------------------------------------------------------===//
#pragma once

#include "base/Tether.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

namespace device_shim::detail {

class ResultsPass {
public:
  /// `whenReached` runs before autograd goes back into the model, once in such a pass, on a thread of
  /// autograd.
  explicit ResultsPass(std::function<void()> whenReached) : reached(std::move(whenReached)) {}
  ~ResultsPass() { tether.cut(); }
  ResultsPass(const ResultsPass &) = delete;
  ResultsPass &operator=(const ResultsPass &) = delete;

  /// The tensors in a result of forward(). Their backward() throws UsageError when this has ended. Passes for
  /// the gradients of chosen tensors, as by torch::autograd::grad(), do not count: a rank may be alone with
  /// them.
  void follow(const std::vector<at::Tensor *> &outputs);
  /// Also within passes that such a pass makes, as where segments are computed again.
  bool active() const;

  /// See BackwardPass.
  void passEnds();
  void passFailed(uint64_t pass) noexcept;

private:
  void reach();

  std::function<void()> reached;
  mutable std::mutex mutex;
  uint64_t passes = 0;
  bool atWork = false; ///< the last of `passes`
  Tether<ResultsPass> tether{*this};
};

} // namespace device_shim::detail
