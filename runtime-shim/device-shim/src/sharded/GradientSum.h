//===- GradientSum.h - gradients added up over the ranks --------*- C++ -*-===//
//
// The gradients of a partition, until each rank has its part of their average.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "sharded/MemoryCount.h"

#include <device_shim/Communicator.h>

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <vector>

namespace device_shim::detail {

/// Keeps gradients as autograd made them and sends them in pieces, each of which is some elements of every
/// rank's part: one vector of all would need as much memory again, and so would its exchange.
class GradientSum {
public:
  struct Layout {
    int64_t partSize = 0; ///< elements that each rank gets
    int rankCount = 1;
    int64_t pieceSize = 1;               ///< at most so many elements of each part are sent together
    at::TensorOptions options;           ///< of the gradients
    at::ScalarType sumType = at::kFloat; ///< of what each rank gets
  };
  GradientSum(const Layout &layout, MemoryCount &memory);

  /// A gradient whose elements begin at `offset` of the whole vector. What is never given is zero.
  void take(int64_t offset, const at::Tensor &gradient);
  /// Sends all; the last pieces are under way then. `total`: what this rank's part of the average is added
  /// to; undefined: there is none. Collective.
  void start(Communicator &ranks, const at::Tensor &total);
  /// This rank's part, added to the total or in memory of its own; undefined when nothing was started.
  /// Collective.
  at::Tensor finish();
  /// Forgets all, and returns when nothing is under way any more. That a rank has died is said by the next
  /// operation.
  void abandon() noexcept;

private:
  struct Given {
    int64_t offset;
    at::Tensor values; ///< a vector
  };
  struct Piece {
    at::Tensor values; ///< elements of each rank's part, one rank after the other
    at::Tensor sum;    ///< of those of this rank's part
    int64_t first;     ///< of them, in the part
    Pending pending;
  };

  void sendNext();
  void finishFirst();
  at::Tensor pieceOf(int64_t first, int64_t size) const;
  void dropSent();
  int64_t lastInPart(const Given &each) const;
  void hold(const at::Tensor &tensor, int64_t times);

  Layout layout;
  MemoryCount &memory;
  Communicator *ranks = nullptr;
  std::vector<Given> given;
  std::deque<Piece> pieces; ///< under way
  at::Tensor part;
  bool adds = false; ///< to the part, which is the caller's
  int64_t sent = 0;  ///< elements of each part
};

} // namespace device_shim::detail
