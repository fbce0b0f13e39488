//===- FlatPartition.h - parameters as one shared vector --------*- C++ -*-===//
//
// A few parameters of one type as one vector, of which every rank owns an equal part.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "autograd/GradientMark.h"
#include "params/ShardedParts.h"
#include "sharded/GradientSum.h"
#include "sharded/MemoryCount.h"

#include <device_shim/Communicator.h>

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace device_shim::detail {

class FlatPartition {
public:
  struct Member {
    std::string name;
    std::vector<std::string> aliases; ///< further names of a tied parameter
    at::Tensor parameter;
    std::vector<int64_t> sizes;
    int64_t elements = 0;
    int64_t offset = 0;
    at::Tensor view;     ///< of the whole vector; must not be read while that has no memory
    int64_t version = 0; ///< of the parameter, which operations on it count up
  };

  struct Placement {
    at::Device compute = at::kCPU; ///< where the whole vector is
    at::ScalarType type = at::kFloat;
    at::Device optimizer = at::kCPU; ///< where this rank's master part, its gradient and state are
    at::Device resting = at::kCPU;   ///< where this rank's part of the parameters is between uses
    bool pinned = false;
    bool keepWhole = false; ///< stage 2
    int group = 0;
    int64_t messageBytes = 0; ///< of gradients that are sent together, at most
  };

  /// Takes the parameters over: they become views of the whole vector.
  FlatPartition(std::vector<Member> members, const Placement &placement,
                const std::shared_ptr<Communicator> &ranks, MemoryCount &memory);
  /// An optimizer that goes on with master() fails.
  ~FlatPartition();
  FlatPartition(const FlatPartition &) = delete;
  FlatPartition &operator=(const FlatPartition &) = delete;

  const std::vector<Member> &members() const { return parts; }
  int group() const { return placement.group; }
  bool trainable() const { return needsGradient; }
  /// Looks which members are frozen now. While all are, they take no part in backward passes, and
  /// master().grad() is left as it is. Returns how many are not. \throws UsageError for a trainable part of
  /// which some are frozen.
  size_t followFreezing();
  /// This rank's part of the float parameters, a leaf; undefined when they are frozen.
  const at::Tensor &master() const { return ownMaster; }
  int64_t partSize() const { return ownSize; }

  /// The first member that is not a view of the whole vector any more, or, while that is freed, not empty:
  /// others gave it memory of its own. Null: there is none.
  const Member *replaced() const;
  /// The first member that was changed by an operation on it, where that is lost. Null: there is none.
  const Member *overwrittenMember() const;

  /// The member, or one of them, in whose memory the tensor is. Null: it is elsewhere.
  const Member *sharesMemory(const at::Tensor &tensor) const;

  /// The whole vector, in two steps. \param ranks a communicator used for gathering only.
  void startGather(Communicator &ranks);
  void finishGather();
  /// Frees the whole vector, unless it is kept.
  void release();
  bool gathered() const { return hasWhole; }

  /// \throws UsageError for a member that gets a gradient although followFreezing() found it frozen.
  void requireLearning(size_t member) const;
  /// Takes the gradient of a member over. \throws UsageError for a sparse one.
  void takeGradient(size_t member);
  /// Begins to sum up what takeGradient() took, over the ranks; what it did not counts as zero.
  void startReduce(Communicator &ranks);
  /// Adds this rank's part of the average to master().grad(). What goes to the host arrives later.
  /// Collective.
  void finishReduce();
  void finishArrival();
  /// While master() has a gradient, its members have marks in place of theirs, except in backward passes.
  void placeMarks();
  /// master().grad() follows what was done to the marks, as by Module::zero_grad(). Returns a member where
  /// that cannot be followed; null: there is none.
  const Member *takeMarks();
  /// Forgets what takeGradient() took and what is reduced.
  void abandonGradient() noexcept;

  /// Lets the parameters follow the values of this rank's part, where these may have changed. Collective when
  /// the parameters are kept whole. `stepsTaken`: an optimizer may have changed master() at any time: some
  /// work on data(), which no version counter shows.
  void synchronize(Communicator &ranks, bool stepsTaken);
  /// As synchronize() after steps, where the parameters are kept whole. Returns whether they were what they
  /// are now.
  bool follow(Communicator &ranks);

  /// Optimizers make gradients undefined without telling anyone: lets the count of bytes follow.
  void countGradient();

  /// All ranks' parts of a vector like master(), in one vector on the compute device. Collective.
  at::Tensor assemble(const at::Tensor &part, Communicator &ranks) const;
  /// This rank's part of a vector with all members.
  at::Tensor ownPart(const at::Tensor &whole) const;
  int64_t paddedSize() const { return ownSize * rankCount; }
  /// This rank's part of the parameters, also of frozen ones, in the type of master parts: what an optimizer
  /// works in, float for half types. Frozen parameters have the precision of the compute type.
  at::Tensor ownValues() const;
  void setOwnValues(const at::Tensor &values);

private:
  at::Tensor joined() const;
  GradientSum::Layout sumLayout() const;
  void allocateWhole();
  void pointMembers(bool atWhole);
  void noteVersions();
  void addToMaster(const at::Tensor &part);
  void clearGradient(const Member &member);
  at::Tensor onHost(const at::Tensor &tensor) const;
  int64_t wholeBytes() const;

  std::vector<Member> parts;
  std::vector<std::unique_ptr<GradientMark>> marks; ///< of each, where they learn
  Placement placement;
  MemoryCount &memory;
  int rank;
  int rankCount;
  int64_t ownSize = 0;
  at::ScalarType masterType = at::kFloat;
  bool needsGradient = false;
  bool frozenNow = false;
  at::Tensor whole; ///< [paddedSize()], of the compute type
  bool hasWhole = false;
  at::Tensor resting;   ///< this rank's part, of the compute type; undefined when kept whole
  at::Tensor ownMaster; ///< may share memory with `resting` or `whole`
  std::optional<ShardedPart> knownMaster;
  int64_t seenVersion = 0;
  bool overwritten = false;    ///< by setOwnValues()
  int64_t countedGradient = 0; ///< bytes of master().grad() in `memory`
  std::optional<GradientSum> sum;
  bool gradientsLinked = false; ///< what takeGradient() took last had a graph of its own
  at::Tensor gatherInput;
  at::Tensor arriving; ///< [partSize()], on the host; filled when `copying` is through
  std::optional<c10::Stream> copying;
  Pending gathering;
};

} // namespace device_shim::detail
