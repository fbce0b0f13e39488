//===- Distributed.h - joins a distributed job ------------------*- C++ -*-===//
//
// Joining a distributed job: rank, world size and device of this process, and its communicator.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <device_shim/Communicator.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace device_shim {

/// Which library moves the data between the ranks.
enum class Backend {
  automatic, ///< NCCL when the device is a real CUDA GPU and NCCL is compiled in, else Gloo
  gloo,      ///< works on CPU tensors, on virtual GPUs and, staged through host memory, on CUDA tensors
  nccl,      ///< real CUDA GPUs only
};

/// What init_distributed() takes. What is not set comes from the environment, see LaunchEnvironment.
struct DistributedOptions {
  std::optional<int> rank;                   ///< 0 to world_size - 1; set with world_size or not at all
  std::optional<int> world_size;             ///< at least 1
  std::optional<int> local_rank;             ///< number on this machine, which chooses the GPU
  std::optional<std::string> master_address; ///< host of rank 0
  std::optional<int> master_port;            ///< 1 to 65535
  Backend backend = Backend::automatic;
  /// The device of this rank. Unset: cuda:LOCAL_RANK where CUDA devices are visible, else the CPU.
  std::optional<at::Device> device;
  /// How long to wait for the store, then for the other ranks, then for the connections to them.
  std::chrono::milliseconds init_timeout = std::chrono::minutes(5);
  /// How long one collective operation may take (PyTorch's default for NCCL). Then all ranks learn which
  /// of them has begun fewer operations, see Communicator.
  std::chrono::milliseconds collective_timeout = std::chrono::minutes(10);
  /// A rank that gave no sign of life for this long is taken for dead. Zero turns the watching off, which a
  /// debugger that stops a rank needs.
  std::chrono::milliseconds heartbeat_timeout = std::chrono::seconds(5);
  /// After a rank died, the others have this long to reach a collective operation, which then throws
  /// PeerError; a rank that does not (it hangs in a GPU kernel, say) is ended with exit code 1.
  std::chrono::milliseconds failure_grace = std::chrono::seconds(3);
};

/// Joins the job: checks the environment, makes this rank's device the current one, meets the other ranks at
/// the store of rank 0, and connects to them. With one rank nothing is opened and collectives do nothing.
///
/// The job lasts as long as the returned communicator or a copy of it, which training wrappers hold too. Keep
/// it in main(): a rank that ends without releasing it, or while an exception passes through, counts as
/// failed, and the others are informed.
///
/// With several ranks SIGPIPE is ignored from here on, as Python does it, unless the program handles it:
/// writing to a rank that died is an error then, and does not end the process.
///
/// \throws InitError, in each of three steps within init_timeout and two seconds. The environment and the
///   store: a variable is missing or garbled, the port is in use, MASTER_ADDR is not that of rank 0, rank 0
///   cannot be reached, something else listens there, the device does not exist, this process has joined a
///   job already, or one of its models is spread over several devices by dispatch_model(). The other ranks:
///   some are missing (they are listed), a rank was started twice, or they disagree about the world size or
///   the backend. The connections: a rank cannot connect, which the others learn, or does not in time.
/// Source: https://pytorch.org/docs/stable/elastic/run.html#environment-variables and c10d's TCPStore.
std::shared_ptr<Communicator> init_distributed(const DistributedOptions &options = {});

/// Whether this process is now one of several ranks: init_distributed() has returned, and its communicator or
/// a copy of it is still there.
bool is_distributed();

} // namespace device_shim
