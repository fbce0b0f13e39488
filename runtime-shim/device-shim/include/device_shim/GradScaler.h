//===- GradScaler.h - dynamic loss scaling ----------------------*- C++ -*-===//
//
// Dynamic loss scaling for training in half precision, which the C++ frontend of LibTorch lacks.
// The rules are those of torch.cuda.amp.GradScaler: https://pytorch.org/docs/stable/amp.html#gradient-scaling
//
//===----------------------------------------------------------------------===//
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace torch::optim {
class Optimizer;
}

namespace device_shim {

struct GradScalerOptions {
  double initial_scale = 65536;   ///< above 0, finite
  double growth_factor = 2;       ///< at least 1, finite
  double backoff_factor = 0.5;    ///< above 0, at most 1
  int64_t growth_interval = 2000; ///< steps without overflow before the scale grows; at least 1
  bool enabled = true;            ///< false: the scale is 1 and every step is taken
};

/// Multiplies losses so that small gradients survive half precision, and skips the steps in which that made
/// gradients overflow. Per step:
/// \code
///   scaler.scale(loss).backward();
///   // With ShardedDataParallel its unscale_and_clip_grads(1.0, &scaler) must take the place of the next
///   two. scaler.unscale_(optimizer); clip_grad_norm_(parameters, 1.0);
///   // Skipped when a gradient is infinite or not a number.
///   scaler.step(optimizer);
///   scaler.update();
/// \endcode
/// With several optimizers each is unscaled, stepped or skipped for itself, and update() comes once, after
/// all of them. With DistributedDataParallel all ranks see the same averaged gradients and decide alike; for
/// the partitions of ShardedDataParallel unscale_() and step() communicate with the other ranks, so every
/// rank must call them. The scale is a number of the host, so gradients may be on any devices.
class GradScaler {
public:
  /// \throws UsageError for an option out of its range.
  explicit GradScaler(const GradScalerOptions &options = {});

  /// The number that losses are multiplied by; 1 when not enabled.
  double scale() const { return options.enabled ? current : 1; }
  /// `loss` times the scale: any shape, the same type and device. A half loss above 65504 / scale() becomes
  /// infinite; give it a float one.
  at::Tensor scale(const at::Tensor &loss) const;

  /// Divides the gradients by the scale, on each one's own device, and notes whether all of them are finite,
  /// on all ranks where the parameters are partitions of ShardedDataParallel.
  /// Parameters without gradient do not count. \throws UsageError when one of them was unscaled already since
  /// update(), and for gradients of kHalf, in which small ones would vanish; PeerError where the parameters
  /// are partitions.
  void unscale_(const std::vector<at::Tensor> &parameters);
  void unscale_(torch::optim::Optimizer &optimizer);

  /// For wrappers that unscale the gradients of `parameters` themselves; `finite`: whether all of them were.
  /// \throws UsageError as unscale_().
  void note_unscaled(const std::vector<at::Tensor> &parameters, bool finite);

  /// Calls optimizer.step() when all gradients of its parameters were finite; unscales first those that
  /// nobody did. Returns whether it did. \throws UsageError when called twice for one optimizer before
  /// update(); as unscale_() what that throws.
  bool step(torch::optim::Optimizer &optimizer);
  /// Shrinks the scale when any gradient since the last update() was infinite or not a number, grows it after
  /// growth_interval times without.
  void update();

  /// Whether any gradient that was unscaled since the last update() was infinite or not a number.
  bool found_infinite() const { return infinite; }

  struct State {
    double scale = 0;       ///< above 0, finite
    int64_t good_steps = 0; ///< without overflow since the scale last changed; at least 0
  };
  /// What a file needs to go on later; taken after update(), since what is pending is not in it.
  State state() const { return {current, goodSteps}; }
  /// Goes on from `state`, and forgets which gradients were unscaled since update(). The options stay.
  /// \throws UsageError for a state out of range; nothing has changed then.
  void load_state(const State &state);

private:
  void requireScaled(const std::vector<at::Tensor> &parameters) const;
  void forget();

  GradScalerOptions options;
  double current;
  int64_t goodSteps = 0;
  bool infinite = false;
  /// Since the last update(): parameters whose gradients were unscaled, and whether these were finite; and
  /// optimizers that had their step.
  std::map<const void *, bool> unscaled;
  std::set<const void *> stepped;
};

} // namespace device_shim
