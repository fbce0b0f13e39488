//===- BackwardPass.h - the end of a backward pass --------------*- C++ -*-===//
//
// The end of a backward pass of autograd, also of one that an exception ends.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "base/Tether.h"

#include <torch/csrc/autograd/engine.h>

#include <cstdint>
#include <memory>

namespace device_shim::detail {

/// Calls passEnds() of what it is tied to, or, where an exception ends the pass, passFailed() before that
/// comes out of backward(). Autograd calls no hook then, but it destroys what the pass held.
template <typename T> class BackwardPass {
public:
  BackwardPass(Tether<T> to, uint64_t ofPass) : tether(std::move(to)), number(ofPass) {}
  BackwardPass(const BackwardPass &) = delete;
  BackwardPass &operator=(const BackwardPass &) = delete;
  ~BackwardPass() {
    tether.reach([this](T &object) { object.passFailed(number); });
  }

  /// To be called by what runs in the pass. `number` is a new one for each pass; passFailed() comes for those
  /// that ended well, too.
  static void follow(const Tether<T> &tether, uint64_t number) {
    auto pass = std::make_shared<BackwardPass>(tether, number);
    torch::autograd::Engine::get_default_engine().queue_callback(
        [pass] { pass->tether.reach([](T &object) { object.passEnds(); }); });
  }

private:
  Tether<T> tether;
  uint64_t number;
};

} // namespace device_shim::detail
