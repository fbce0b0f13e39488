//===- StageUses.h - progress of autograd through a stage -------*- C++ -*-===//
//
// How far autograd has come with the uses of a stage.
//
// Of all operations that are ready, autograd executes the one that was recorded last. So when it reaches
// one use of a stage, it is through with all that was recorded after that use.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace device_shim::detail {

/// One run of a stage in a forward pass. The hooks on its results hold it, so it ends with their graph.
struct StageUse {
  uint64_t number = 0; ///< the larger, the later, over all stages
  size_t position = 0; ///< among the runs of stages in its forward pass
  bool reached = false;
};

/// The runs of one stage.
class StageUses {
public:
  std::shared_ptr<StageUse> add(uint64_t number, size_t position);
  /// Autograd has reached the results of `use`.
  void reach(StageUse &use);
  /// Autograd is at use `number`, of any stage: whether it is through with those of this stage that it has
  /// reached in this pass ...
  bool leftBehind(uint64_t number) const { return oldestReached != kNone && oldestReached > number; }
  /// ... and no other use has a graph, so that parameters of this stage get no more gradients.
  bool allLeftBehind(uint64_t number) const;
  void endPass() { oldestReached = kNone; }

private:
  static constexpr uint64_t kNone = UINT64_MAX;
  std::vector<std::weak_ptr<StageUse>> uses;
  uint64_t oldestReached = kNone; ///< in this pass
};

} // namespace device_shim::detail
