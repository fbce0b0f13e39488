// The ranks of a job and the collective operations between them.
//
// Every rank must call the same operations in the same order with tensors of the same shape and type.
// Operations on the same communicator are executed in that order; those of a duplicate() are independent.
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

/// An operation under way. Its tensors must not be read or written before wait() returned.
class Pending {
public:
  Pending() = default;
  explicit Pending(std::shared_ptr<detail::Operation> started) : operation(std::move(started)) {}

  /// Waits for the end, on the GPU's current stream where the backend is NCCL. Calling it again does nothing.
  /// \throws PeerError when another rank died or collective_timeout passed.
  void wait();

  bool valid() const { return operation != nullptr; }

private:
  std::shared_ptr<detail::Operation> operation;
};

/// What takes tensors or waits throws PeerError when another rank died or collective_timeout passed; the
/// _async forms throw it from wait(), and themselves when it is known already. Errors of LibTorch about the
/// tensors (c10::Error) are passed on.
class Communicator {
public:
  /// Not for programs: init_distributed() and duplicate() make communicators.
  explicit Communicator(std::shared_ptr<detail::Backing> backing);
  ~Communicator();
  Communicator(const Communicator &) = delete;
  Communicator &operator=(const Communicator &) = delete;

  int rank() const;
  int size() const;
  int local_rank() const;
  /// The device of this rank.
  at::Device device() const;
  /// "nccl", "gloo", or "none" with a single rank.
  std::string backend() const;

  /// Reduces `tensor`, of any shape, in place over all ranks. bfloat16 is added as float where the backend
  /// cannot.
  Pending all_reduce_async(const at::Tensor &tensor, Reduction reduction = Reduction::sum);
  void all_reduce(const at::Tensor &tensor, Reduction reduction = Reduction::sum);

  /// Overwrites `tensor` with that of rank `root`.
  void broadcast(const at::Tensor &tensor, int root = 0);
  /// The same for many tensors of any types and devices; few messages are sent.
  void broadcast(const std::vector<at::Tensor> &tensors, int root = 0);

  /// Fills `output`, contiguous [size() * n], with the `input` [n] of every rank in order of rank. `input`
  /// may be this rank's part of `output`.
  Pending all_gather_async(const at::Tensor &output, const at::Tensor &input);
  void all_gather(const at::Tensor &output, const at::Tensor &input);

  /// Adds `input`, contiguous [size() * n], over all ranks and returns this rank's part of the sum in
  /// `output` [n]. \throws UsageError for other shapes, as all_gather does. Gloo has no such operation in
  /// LibTorch 1.13: there the parts are exchanged (all-to-all, the same number of bytes) and added on this
  /// rank in the order of the ranks, in float for half types, so results do not depend on the timing.
  /// `output` may be of a wider type than `input`.
  Pending reduce_scatter_async(const at::Tensor &output, const at::Tensor &input);
  void reduce_scatter(const at::Tensor &output, const at::Tensor &input);

  /// Returns when every rank has called it.
  void barrier();

  /// One number per rank, reduced over all ranks on the host.
  double reduce_number(double value, Reduction reduction);

  /// The text of rank `root`, on every rank.
  std::string broadcast_text(const std::string &text, int root = 0);

  /// Another communicator of the same ranks, whose operations do not wait for those of this one. Collective.
  std::shared_ptr<Communicator> duplicate();

private:
  std::shared_ptr<detail::Backing> backing;
};

} // namespace device_shim
