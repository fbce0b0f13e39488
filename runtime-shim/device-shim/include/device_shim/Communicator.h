//===- Communicator.h - ranks and collective operations ---------*- C++ -*-===//
//
// The ranks of a job and the collective operations between them.
//
// Every rank must call the same operations in the same order with tensors of the same shape and type.
// Operations on the same communicator are executed in that order; those of a duplicate() are independent.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <memory>
#include <string>
#include <vector>

namespace device_shim {

namespace detail {
class Backing;
class Operation;
} // namespace detail

enum class Reduction { sum, maximum, minimum };

/// An operation under way. Its tensors must not be read or written before wait() returned; when it threw, the
/// backend may still write them, so they must not be used for anything else.
class Pending {
public:
  Pending() = default;
  explicit Pending(std::shared_ptr<detail::Operation> started) : operation(std::move(started)) {}

  /// Waits for the end. Where the backend is NCCL only the GPU's current stream does, and the host goes on.
  /// Calling it again does nothing. \throws PeerError, see Communicator.
  void wait();

  /// False for one that was made without an operation, or whose operation needed none.
  bool valid() const { return operation != nullptr; }

private:
  std::shared_ptr<detail::Operation> operation;
};

/// What takes tensors or waits throws PeerError when another rank died, left the job or called another
/// operation, when ranks wait for each other in operations of different communicators (threads that never
/// waited for one do not count), or collective_timeout passed without all ranks taking part; the _async forms
/// throw it from wait(), and themselves when it is known already. With NCCL the host does not wait: such a
/// failure is printed, the next operation on any rank throws it, and a rank that comes to none within
/// failure_grace is ended with exit code 1. Where heartbeat_timeout is 0 only LibTorch's own watchdog watches
/// NCCL, which ends the process.
///
/// The caller's mistakes are UsageError (types, shapes, ranks that do not exist), DeviceError, and what
/// LibTorch says about the tensors (c10::Error). Nothing was sent then, and the communicator can be used.
///
/// Source: c10d's process groups, https://pytorch.org/docs/stable/distributed.html
class Communicator {
public:
  /// Not for programs: init_distributed() and duplicate() make communicators.
  explicit Communicator(std::shared_ptr<detail::Backing> backing);
  ~Communicator();
  Communicator(const Communicator &) = delete;
  Communicator &operator=(const Communicator &) = delete;

  /// 0 to size() - 1.
  int rank() const;
  /// At least 1.
  int size() const;
  /// Among the ranks of this machine, from 0.
  int local_rank() const;
  /// The device of this rank.
  at::Device device() const;
  /// "nccl", "gloo", or "none" with a single rank.
  std::string backend() const;

  /// Reduces `tensor`, of any shape and strides, in place over all ranks. It is dense, with elements of a
  /// floating type, kInt, kLong, kChar, kByte or kBool. Gloo adds bfloat16 as float and half as half; NCCL
  /// adds each type as it is, so half types round after each addition there.
  /// \throws UsageError for other elements.
  Pending all_reduce_async(const at::Tensor &tensor, Reduction reduction = Reduction::sum);
  void all_reduce(const at::Tensor &tensor, Reduction reduction = Reduction::sum);

  /// Overwrites `tensor`, of any shape and type, with that of rank `root`, 0 to size() - 1, which has the
  /// same shape and type. \throws UsageError for another root.
  void broadcast(const at::Tensor &tensor, int root = 0);
  /// The same for many tensors of any types and devices, in the same order on all ranks; few messages are
  /// sent.
  void broadcast(const std::vector<at::Tensor> &tensors, int root = 0);

  /// Fills `output`, contiguous [size() * n], with the `input` [n] of every rank in order of rank. Both have
  /// one type, any, and one device. `input` may be this rank's part of `output`.
  /// \throws UsageError for other shapes and types, DeviceError.
  Pending all_gather_async(const at::Tensor &output, const at::Tensor &input);
  void all_gather(const at::Tensor &output, const at::Tensor &input);

  /// Adds `input`, contiguous [size() * n], over all ranks and returns this rank's part of the sum in
  /// `output` [n], on the same device and of the same type or a wider one. Gloo has no such operation in
  /// LibTorch 1.13: there the parts are exchanged (all-to-all, the same number of bytes) and added on this
  /// rank in the order of the ranks, in float for half types, so results do not depend on the timing. NCCL
  /// adds in the type of `input` and in an order of its own: with half types its sums differ.
  /// \throws UsageError for other shapes and types, DeviceError, as all_gather.
  Pending reduce_scatter_async(const at::Tensor &output, const at::Tensor &input);
  void reduce_scatter(const at::Tensor &output, const at::Tensor &input);

  /// Returns when every rank has called it; the host waits, also with NCCL.
  void barrier();

  /// One number per rank, reduced over all ranks; the host waits for it.
  double reduce_number(double value, Reduction reduction);

  /// The text of rank `root`, 0 to size() - 1, on every rank; the host waits for it.
  std::string broadcast_text(const std::string &text, int root = 0);

  /// Another communicator of the same ranks, whose operations do not wait for those of this one. Collective;
  /// the host waits. With NCCL it takes device memory of its own, which later duplicates use again when this
  /// one is gone on all ranks, and operations on both must be begun in one order on all ranks.
  std::shared_ptr<Communicator> duplicate();

private:
  std::shared_ptr<detail::Backing> backing;
};

} // namespace device_shim
