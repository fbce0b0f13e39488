//===- OuterLauncher.h - ranks from torchrun, srun or mpirun ----*- C++ -*-===//
//
// Reads the rank that another launcher gave this process from its environment variables.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "base/Environment.h"

#include <optional>
#include <string>

namespace devicerun {

inline constexpr const char *kTorchrun = "torchrun";

/// The rank that an outer launcher gave this process.
struct OuterRank {
  std::string launcher; ///< "torchrun", "srun", "mpirun" or "mpiexec"
  RankIdentity who;
  Rendezvous where;
};

/// Reads the variables of torchrun (RANK, WORLD_SIZE), Open MPI (OMPI_COMM_WORLD_*), MPICH and Intel MPI
/// (PMI_*, MPI_LOCALRANKID), MVAPICH2 (MV2_COMM_WORLD_*), and of a SLURM step (SLURM_PROCID within srun; a
/// batch script is not a rank). MASTER_ADDR and MASTER_PORT win where they are set; otherwise all ranks
/// derive the same ones from the job's id, or from `launcherPid` where the launcher gives none and all ranks
/// are on one machine. Nothing when no outer launcher is found. Throws RunError(ExitUsage) when the variables
/// are incomplete or contradict each other.
std::optional<OuterRank> findOuterRank(const Environment &environment, int launcherPid);

/// What to say where SLURM was asked for several tasks and this process is not seen to be one of them, so
/// that it becomes the only rank: with several processes that would be a wrong result. Empty otherwise.
std::string taskWithoutStep(const Environment &environment);

/// The first host of a SLURM node list: "gpu[03-07,9],login" gives "gpu03".
std::string firstHost(const std::string &nodeList);

/// Tasks on one node from SLURM's "2(x3),1"; 0 when the list does not say.
int tasksOnNode(const std::string &tasksPerNode, int node);

} // namespace devicerun
