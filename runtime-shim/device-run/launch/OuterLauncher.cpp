#include "launch/OuterLauncher.h"

#include "base/RunError.h"
#include "base/Text.h"

#include <fmt/format.h>

#include <cstdint>
#include <initializer_list>

namespace devicerun {
namespace {

const std::string *lookUp(const Environment &environment, std::initializer_list<const char *> names) {
  for (const char *name : names)
    if (auto found = environment.find(name); found != environment.end() && !found->second.empty())
      return &found->second;
  return nullptr;
}

std::optional<int> optionalNumber(const Environment &environment, std::initializer_list<const char *> names) {
  const std::string *text = lookUp(environment, names);
  if (!text)
    return std::nullopt;
  std::optional<std::int64_t> value = parseInteger(*text);
  if (!value || *value < 0 || *value > 1'000'000)
    throw RunError(ExitUsage, fmt::format("{}='{}' in the environment is not a number; unset it, or give -n",
                                          *names.begin(), *text));
  return static_cast<int>(*value);
}

int number(const Environment &environment, const char *launcher, std::initializer_list<const char *> names) {
  if (std::optional<int> value = optionalNumber(environment, names))
    return *value;
  throw RunError(ExitUsage,
                 fmt::format("the environment looks like {}'s but {} is not set; set it, or give -n RANKS",
                             launcher, *names.begin()));
}

// FNV-1a: every rank must get the same answer, on any machine and with any standard library.
std::uint32_t hash(std::string_view text) {
  std::uint32_t value = 2166136261U;
  for (char c : text)
    value = (value ^ static_cast<unsigned char>(c)) * 16777619U;
  return value;
}

// Below the ports that systems hand out by themselves.
int portFor(const std::string &job) { return 20000 + static_cast<int>(hash(job) % 10000); }

/// MASTER_ADDR and MASTER_PORT, or else those that follow from the job.
Rendezvous rendezvous(const Environment &environment, const std::string &job, const std::string &firstNode) {
  Rendezvous where;
  const std::string *address = lookUp(environment, {"MASTER_ADDR"});
  where.address = address ? *address : firstNode;
  where.port = optionalNumber(environment, {"MASTER_PORT"}).value_or(portFor(job));
  where.runId = job;
  return where;
}

void checkConsistent(const OuterRank &outer) {
  const RankIdentity &who = outer.who;
  if (who.rank < who.worldSize && who.localRank < who.localWorldSize && who.localWorldSize <= who.worldSize)
    return;
  throw RunError(ExitUsage,
                 fmt::format("{} gave rank {} of {}, local rank {} of {}, which cannot be; give -n RANKS to "
                             "start ranks of your own",
                             outer.launcher, who.rank, who.worldSize, who.localRank, who.localWorldSize));
}

OuterRank fromTorchrun(const Environment &environment) {
  OuterRank outer{kTorchrun, {}, {}};
  RankIdentity &who = outer.who;
  who.rank = number(environment, kTorchrun, {"RANK"});
  who.worldSize = number(environment, kTorchrun, {"WORLD_SIZE"});
  who.localRank = optionalNumber(environment, {"LOCAL_RANK"}).value_or(who.rank);
  who.localWorldSize = optionalNumber(environment, {"LOCAL_WORLD_SIZE"}).value_or(who.worldSize);
  who.nodeRank = optionalNumber(environment, {"GROUP_RANK", "NODE_RANK"}).value_or(0);
  who.nodes = optionalNumber(environment, {"GROUP_WORLD_SIZE"}).value_or(1);
  const std::string *runId = lookUp(environment, {"TORCHELASTIC_RUN_ID"});
  const std::string *address = lookUp(environment, {"MASTER_ADDR"});
  if (!address)
    throw RunError(ExitUsage,
                   "RANK is set but MASTER_ADDR is not; set MASTER_ADDR and MASTER_PORT, unset RANK, "
                   "or give -n RANKS to start ranks of your own");
  outer.where = {*address, number(environment, kTorchrun, {"MASTER_PORT"}), runId ? *runId : "none",
                 optionalNumber(environment, {"TORCHELASTIC_RESTART_COUNT"}).value_or(0),
                 optionalNumber(environment, {"TORCHELASTIC_MAX_RESTARTS"}).value_or(0)};
  return outer;
}

/// `id` names the job on all its machines; where there is none, the launcher's process does on one machine.
OuterRank fromMpi(const Environment &environment, const std::string *id, int launcherPid, RankIdentity who,
                  const char *launcher) {
  bool oneNode = who.localWorldSize == who.worldSize;
  if (!oneNode && !lookUp(environment, {"MASTER_ADDR"}))
    throw RunError(ExitUsage,
                   fmt::format("{} started ranks on several machines and does not say where rank 0 "
                               "is; pass MASTER_ADDR and MASTER_PORT to all ranks",
                               launcher));
  if (!oneNode && !id && !lookUp(environment, {"MASTER_PORT"}))
    throw RunError(ExitUsage,
                   fmt::format("{} started ranks on several machines and gives the job no name from "
                               "which a port could follow; pass MASTER_PORT to all ranks",
                               launcher));
  std::string job = fmt::format("{}-{}", launcher, id ? *id : std::to_string(launcherPid));
  // Ranks are laid out machine by machine unless mpirun has other options.
  who.nodeRank = who.localWorldSize > 0 ? who.rank / who.localWorldSize : 0;
  who.nodes = who.localWorldSize > 0 ? (who.worldSize + who.localWorldSize - 1) / who.localWorldSize : 1;
  return {launcher, who, rendezvous(environment, job, "127.0.0.1")};
}

OuterRank fromOpenMpi(const Environment &environment, int launcherPid) {
  RankIdentity who;
  who.rank = number(environment, "mpirun", {"OMPI_COMM_WORLD_RANK"});
  who.worldSize = number(environment, "mpirun", {"OMPI_COMM_WORLD_SIZE"});
  who.localRank = number(environment, "mpirun", {"OMPI_COMM_WORLD_LOCAL_RANK"});
  who.localWorldSize = optionalNumber(environment, {"OMPI_COMM_WORLD_LOCAL_SIZE"}).value_or(who.worldSize);
  const std::string *id = lookUp(environment, {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"});
  return fromMpi(environment, id, launcherPid, who, "mpirun");
}

OuterRank fromMvapich(const Environment &environment, int launcherPid) {
  RankIdentity who;
  who.rank = number(environment, "mpirun_rsh", {"MV2_COMM_WORLD_RANK"});
  who.worldSize = number(environment, "mpirun_rsh", {"MV2_COMM_WORLD_SIZE"});
  who.localRank = number(environment, "mpirun_rsh", {"MV2_COMM_WORLD_LOCAL_RANK"});
  who.localWorldSize = optionalNumber(environment, {"MV2_COMM_WORLD_LOCAL_SIZE"}).value_or(who.worldSize);
  return fromMpi(environment, lookUp(environment, {"MPISPAWN_ID"}), launcherPid, who, "mpirun_rsh");
}

OuterRank fromPmi(const Environment &environment, int launcherPid) {
  RankIdentity who;
  who.rank = number(environment, "mpiexec", {"PMI_RANK"});
  who.worldSize = number(environment, "mpiexec", {"PMI_SIZE"});
  who.localRank = optionalNumber(environment, {"MPI_LOCALRANKID"}).value_or(who.rank);
  who.localWorldSize = optionalNumber(environment, {"MPI_LOCALNRANKS"}).value_or(who.worldSize);
  // Of Slurm's PMI-2, Cray's PALS and ALPS; Hydra gives its job no name.
  const std::string *id = lookUp(environment, {"PMI_JOBID", "PALS_APID", "ALPS_APP_ID"});
  return fromMpi(environment, id, launcherPid, who, "mpiexec");
}

OuterRank fromSlurm(const Environment &environment) {
  OuterRank outer{"srun", {}, {}};
  RankIdentity &who = outer.who;
  who.rank = number(environment, "srun", {"SLURM_PROCID"});
  who.worldSize = number(environment, "srun", {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"});
  who.localRank = number(environment, "srun", {"SLURM_LOCALID"});
  who.nodeRank = optionalNumber(environment, {"SLURM_NODEID"}).value_or(0);
  who.nodes = optionalNumber(environment, {"SLURM_STEP_NUM_NODES", "SLURM_NNODES"}).value_or(1);
  const std::string *tasks = lookUp(environment, {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"});
  int here = tasks ? tasksOnNode(*tasks, who.nodeRank) : 0;
  who.localWorldSize = here > 0 ? here : (who.worldSize + who.nodes - 1) / who.nodes;
  const std::string *nodes =
      lookUp(environment, {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"});
  if (who.nodes > 1 && !nodes && !lookUp(environment, {"MASTER_ADDR"}))
    throw RunError(ExitUsage,
                   "srun started ranks on several machines, but SLURM_STEP_NODELIST is not set, so "
                   "the machine of rank 0 is unknown; pass it on, or MASTER_ADDR, to all ranks");
  const std::string *job = lookUp(environment, {"SLURM_JOB_ID", "SLURM_JOBID"});
  const std::string *step = lookUp(environment, {"SLURM_STEP_ID", "SLURM_STEPID"});
  std::string id = fmt::format("slurm-{}.{}", job ? *job : "0", step ? *step : "0");
  outer.where = rendezvous(environment, id, who.nodes > 1 && nodes ? firstHost(*nodes) : "127.0.0.1");
  return outer;
}

/// Batch scripts and `salloc` have no step, or one of the special ones, whose numbers begin here.
constexpr std::int64_t kFirstSpecialStep = 0xfffffff0;

/// Whether this is a task of a SLURM step and not a batch script, which has SLURM_PROCID=0 too. Any variable
/// of a step is enough: containers and tests often pass on only some of them.
bool inSlurmStep(const Environment &environment) {
  const std::string *task = lookUp(environment, {"SLURM_PROCID"});
  if (!task)
    return false;
  if (parseInteger(*task).value_or(0) > 0 ||
      lookUp(environment, {"SLURM_STEP_NODELIST", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NUM_NODES",
                           "SLURM_STEP_TASKS_PER_NODE"}))
    return true;
  const std::string *step = lookUp(environment, {"SLURM_STEP_ID", "SLURM_STEPID"});
  return step && parseInteger(*step).value_or(kFirstSpecialStep) < kFirstSpecialStep;
}

std::optional<OuterRank> detect(const Environment &environment, int launcherPid) {
  if (lookUp(environment, {"RANK"}) && lookUp(environment, {"WORLD_SIZE"}))
    return fromTorchrun(environment);
  if (lookUp(environment, {"OMPI_COMM_WORLD_RANK"}))
    return fromOpenMpi(environment, launcherPid);
  // srun may speak PMI too; its own variables say more.
  if (inSlurmStep(environment))
    return fromSlurm(environment);
  if (lookUp(environment, {"MV2_COMM_WORLD_RANK"}))
    return fromMvapich(environment, launcherPid);
  if (lookUp(environment, {"PMI_RANK"}))
    return fromPmi(environment, launcherPid);
  return std::nullopt;
}

} // namespace

std::string firstHost(const std::string &nodeList) {
  std::size_t bracket = nodeList.find('[');
  std::size_t comma = nodeList.find(',');
  if (bracket == std::string::npos || comma < bracket)
    return nodeList.substr(0, comma);
  std::size_t end = nodeList.find_first_of(",-]", bracket);
  std::size_t closing = nodeList.find(']', bracket);
  if (end == std::string::npos || closing == std::string::npos)
    return nodeList;
  // Names may go on after the bracket: "rack[1-2]node[3-4]".
  std::string rest = nodeList.substr(closing + 1);
  std::string tail = rest.empty() || rest.front() == ',' ? "" : firstHost(rest);
  return nodeList.substr(0, bracket) + nodeList.substr(bracket + 1, end - bracket - 1) + tail;
}

int tasksOnNode(const std::string &tasksPerNode, int node) {
  int first = 0;
  for (const std::string &part : split(tasksPerNode, ',')) {
    std::size_t repeat = part.find("(x");
    std::int64_t tasks = parseInteger(part.substr(0, repeat)).value_or(0);
    std::int64_t nodes = 1;
    if (repeat != std::string::npos)
      nodes = parseInteger(part.substr(repeat + 2, part.size() - repeat - 3)).value_or(1);
    if (node < first + nodes)
      return static_cast<int>(tasks);
    first += static_cast<int>(nodes);
  }
  return 0;
}

std::string taskWithoutStep(const Environment &environment) {
  std::optional<int> tasks = optionalNumber(environment, {"SLURM_NTASKS"});
  if (tasks.value_or(1) < 2 || !lookUp(environment, {"SLURM_PROCID"}) || inSlurmStep(environment))
    return "";
  return fmt::format(
      "SLURM_NTASKS is {}, but no variable of a step is set, so this is taken for the batch script: starting "
      "one rank of its own; use srun device-run ..., pass SLURM_STEP_ID on, or give -n RANKS",
      *tasks);
}

std::optional<OuterRank> findOuterRank(const Environment &environment, int launcherPid) {
  std::optional<OuterRank> outer = detect(environment, launcherPid);
  if (outer)
    checkConsistent(*outer);
  return outer;
}

} // namespace devicerun
