//===- LaunchEnvironment.h - variables of the launcher ----------*- C++ -*-===//
//
// The place of this process in a job, as torchrun and device-run describe it in environment variables.
// Source of the names: https://pytorch.org/docs/stable/elastic/run.html#environment-variables
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>

namespace device_shim {

/// Who this process is among the processes of the job.
struct LaunchEnvironment {
  int rank = 0;             ///< RANK: 0 to world_size - 1, unique in the job
  int world_size = 1;       ///< WORLD_SIZE
  int local_rank = 0;       ///< LOCAL_RANK: number on this machine; RANK when unset and LOCAL_WORLD_SIZE too
  int local_world_size = 1; ///< LOCAL_WORLD_SIZE; WORLD_SIZE when unset
  std::string master_address = "127.0.0.1"; ///< MASTER_ADDR: host where the store listens
  int master_port = 29500;                  ///< MASTER_PORT, 1 to 65535
  /// TORCHELASTIC_USE_AGENT_STORE: torchrun already listens on master_port, and rank 0 is a client like the
  /// others.
  bool agent_holds_store = false;
  /// TORCHELASTIC_RESTART_COUNT: keys of an earlier attempt must not be taken for those of this one.
  int attempt = 0;

  /// Reads the variables; empty ones count as unset. Without any of RANK and WORLD_SIZE the process is the
  /// only one of its job, and MASTER_ADDR and MASTER_PORT are not read.
  /// \throws InitError naming the variable that is missing, is not a whole number (blanks are not) or is out
  /// of range, and when srun or mpirun has started several processes without RANK and WORLD_SIZE.
  static LaunchEnvironment from_environment();
};

} // namespace device_shim
