#include "doctor/Checks.h"

#include "base/Text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace devicerun::doctor {
namespace {

constexpr const char *kTopic = "communication";

/// NCCL's own variables ("Environment Variables" of its user guide, 2.28), for slips of the keys.
const std::vector<std::string> &ncclVariables() {
  static const std::vector<std::string> names = {"NCCL_ALGO",
                                                 "NCCL_BUFFSIZE",
                                                 "NCCL_CHECK_POINTERS",
                                                 "NCCL_CHECKS_DISABLE",
                                                 "NCCL_COLLNET_ENABLE",
                                                 "NCCL_COMM_BLOCKING",
                                                 "NCCL_COMM_ID",
                                                 "NCCL_CONF_FILE",
                                                 "NCCL_CROSS_NIC",
                                                 "NCCL_CUMEM_ENABLE",
                                                 "NCCL_CUMEM_HOST_ENABLE",
                                                 "NCCL_DEBUG",
                                                 "NCCL_DEBUG_FILE",
                                                 "NCCL_DEBUG_SUBSYS",
                                                 "NCCL_DMABUF_ENABLE",
                                                 "NCCL_GRAPH_DUMP_FILE",
                                                 "NCCL_GRAPH_MIXING_SUPPORT",
                                                 "NCCL_GRAPH_REGISTER",
                                                 "NCCL_HOSTID",
                                                 "NCCL_IB_ADAPTIVE_ROUTING",
                                                 "NCCL_IB_DISABLE",
                                                 "NCCL_IB_GID_INDEX",
                                                 "NCCL_IB_HCA",
                                                 "NCCL_IB_QPS_PER_CONNECTION",
                                                 "NCCL_IB_RETRY_CNT",
                                                 "NCCL_IB_SL",
                                                 "NCCL_IB_TC",
                                                 "NCCL_IB_TIMEOUT",
                                                 "NCCL_IGNORE_CPU_AFFINITY",
                                                 "NCCL_LAUNCH_MODE",
                                                 "NCCL_MAX_CTAS",
                                                 "NCCL_MAX_NCHANNELS",
                                                 "NCCL_MIN_CTAS",
                                                 "NCCL_MIN_NCHANNELS",
                                                 "NCCL_MNNVL_ENABLE",
                                                 "NCCL_MULTI_RANK_GPU_ENABLE",
                                                 "NCCL_NET",
                                                 "NCCL_NET_GDR_LEVEL",
                                                 "NCCL_NET_GDR_READ",
                                                 "NCCL_NET_PLUGIN",
                                                 "NCCL_NSOCKS_PERTHREAD",
                                                 "NCCL_NTHREADS",
                                                 "NCCL_NVLS_ENABLE",
                                                 "NCCL_P2P_DISABLE",
                                                 "NCCL_P2P_LEVEL",
                                                 "NCCL_P2P_NET_CHUNKSIZE",
                                                 "NCCL_PROTO",
                                                 "NCCL_PXN_DISABLE",
                                                 "NCCL_RAS_ENABLE",
                                                 "NCCL_SET_THREAD_NAME",
                                                 "NCCL_SHM_DISABLE",
                                                 "NCCL_SOCKET_FAMILY",
                                                 "NCCL_SOCKET_IFNAME",
                                                 "NCCL_SOCKET_NTHREADS",
                                                 "NCCL_SOCKET_RETRY_CNT",
                                                 "NCCL_TOPO_DUMP_FILE",
                                                 "NCCL_TOPO_FILE",
                                                 "NCCL_TUNER_PLUGIN",
                                                 "NCCL_WORK_FIFO_DEPTH"};
  return names;
}

/// Variables of PyTorch that were renamed in 2.2 (torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp).
const std::vector<std::string> &renamedVariables() {
  static const std::vector<std::string> names = {"NCCL_ASYNC_ERROR_HANDLING", "NCCL_BLOCKING_WAIT",
                                                 "NCCL_DESYNC_DEBUG", "NCCL_ENABLE_TIMING"};
  return names;
}

bool contains(const std::vector<std::string> &list, const std::string &text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

void checkName(const std::string &name, const Machine &machine, Diagnosis &diagnosis) {
  if (contains(renamedVariables(), name)) {
    const bool newTorch =
        std::any_of(machine.torches.begin(), machine.torches.end(), [](const LibTorch &torch) {
          return torch.version && std::pair(torch.version->major, torch.version->minor) >= std::pair(2, 2);
        });
    if (newTorch)
      diagnosis.warn(kTopic, "renamed-variable",
                     fmt::format("{} is called TORCH_{} from LibTorch 2.2 on", name, name),
                     fmt::format("set TORCH_{} in its place", name));
    return;
  }
  if (name == "NCCL_TIMEOUT")
    diagnosis.warn(kTopic, "no-such-variable", "nothing reads NCCL_TIMEOUT",
                   "the timeout is an option of the process group: init_process_group(timeout=...), "
                   "ProcessGroupNCCL::Options::timeout, or device_shim's collective_timeout");
  else if (!contains(ncclVariables(), name))
    // Names that resemble none are of newer releases, or plugins.
    if (std::optional<std::string> near = nearestTo(name, ncclVariables());
        near && near->size() + 2 >= name.size() && name.size() + 2 >= near->size() &&
        name.rfind(*near, 0) != 0)
      diagnosis.warn(kTopic, "misspelt-variable", fmt::format("NCCL has no variable {}", name),
                     fmt::format("did you mean {}?", *near));
}

/// The interfaces a NCCL_SOCKET_IFNAME asks for: prefixes; "=" exact names; "^" all but these.
void checkInterfaces(const char *name, const Machine &machine, bool prefixes, Diagnosis &diagnosis) {
  const std::optional<std::string> value = machine.variable(name);
  if (!value || machine.interfaces.empty())
    return;
  std::string_view list = *value;
  const bool without = prefixes && list.front() == '^';
  if (without)
    list.remove_prefix(1);
  const bool exact = !prefixes || (!list.empty() && list.front() == '=');
  if (prefixes && !list.empty() && list.front() == '=')
    list.remove_prefix(1);
  bool onlyLoopback = !without;
  bool any = without;
  for (const std::string &wanted : split(list, ','))
    for (const std::string &interface : machine.interfaces)
      if (exact ? interface == wanted : interface.rfind(wanted, 0) == 0) {
        any = true;
        onlyLoopback = onlyLoopback && interface == "lo";
      }
  if (!any) {
    std::string have;
    for (const std::string &interface : machine.interfaces)
      have += (have.empty() ? "" : ", ") + interface;
    diagnosis.problem(
        kTopic, "no-interface", fmt::format("{}={} names no network interface of this machine", name, *value),
        "it has " + have + "; with different names on different machines leave the variable out");
  } else if (onlyLoopback && machine.number("GROUP_WORLD_SIZE").value_or(1) > 1) {
    diagnosis.problem(
        kTopic, "loopback-interface",
        fmt::format("{}={} is the loopback interface, but the job has several machines", name, *value),
        "name the interface of the network between them");
  } else {
    diagnosis.ok(kTopic, "interface", fmt::format("{}={}", name, *value));
  }
}

void checkSlowPaths(const Machine &machine, Diagnosis &diagnosis) {
  struct Slow {
    const char *name, *what;
  };
  for (const Slow &slow : {Slow{"NCCL_P2P_DISABLE", "GPUs do not talk to each other directly (NVLink, PCIe)"},
                           Slow{"NCCL_SHM_DISABLE", "ranks of one machine talk over the network"},
                           Slow{"NCCL_IB_DISABLE", "InfiniBand and RoCE are not used"},
                           Slow{"CUDA_LAUNCH_BLOCKING", "the host waits for every kernel"}})
    if (machine.number(slow.name).value_or(0) != 0)
      diagnosis.warn(kTopic, "slow-path",
                     fmt::format("{}={}: {}", slow.name, *machine.variable(slow.name), slow.what),
                     fmt::format("unset {} after debugging", slow.name));
  for (const char *name : {"NCCL_ALGO", "NCCL_PROTO"})
    if (machine.variable(name))
      diagnosis.warn(kTopic, "pinned-choice",
                     fmt::format("{}={} overrides NCCL's choice, which depends on the message size", name,
                                 *machine.variable(name)),
                     fmt::format("unset {}", name));
}

void checkSharedGpus(const Machine &machine, Diagnosis &diagnosis) {
  if (machine.variable("NCCL_HOSTID"))
    diagnosis.warn(kTopic, "hostid",
                   fmt::format("NCCL_HOSTID={}: ranks with different ones talk over the network, even on one "
                               "machine",
                               *machine.variable("NCCL_HOSTID")),
                   "unset it, unless several ranks are to share a GPU");
  if (machine.number("NCCL_MULTI_RANK_GPU_ENABLE").value_or(0) == 0)
    return;
  std::optional<Version> nccl = machine.nccl;
  for (const Package &package : machine.packages)
    if (!nccl && package.name.rfind("nvidia_nccl_cu", 0) == 0)
      nccl = package.version;
  if (nccl && *nccl < Version{2, 30, 3, ""})
    diagnosis.problem(kTopic, "multi-rank-gpu",
                      fmt::format("NCCL_MULTI_RANK_GPU_ENABLE needs NCCL 2.30.3; this is {}", nccl->text),
                      "give the ranks that share a GPU different NCCL_HOSTIDs, or take a newer NCCL");
}

void checkDebugLevel(const Machine &machine, Diagnosis &diagnosis) {
  // torch/csrc/distributed/c10d/debug.cpp throws for any other value, in whichever case it is written.
  std::optional<std::string> level = machine.variable("TORCH_DISTRIBUTED_DEBUG");
  if (level)
    std::transform(level->begin(), level->end(), level->begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (level && *level != "OFF" && *level != "INFO" && *level != "DETAIL")
    diagnosis.problem(
        kTopic, "debug-level",
        fmt::format("TORCH_DISTRIBUTED_DEBUG={} is refused when the process group is made", *level),
        "set it to OFF, INFO or DETAIL");
  else if (level && *level == "DETAIL")
    diagnosis.warn(kTopic, "debug-level",
                   "TORCH_DISTRIBUTED_DEBUG=DETAIL compares every collective: it is slow",
                   "set it to OFF when the error is found");
}

/// Docker gives containers 64 MiB; NCCL takes some MiB for each pair of ranks.
void checkSharedMemory(const Machine &machine, Diagnosis &diagnosis) {
  const bool several = machine.driver.gpus.size() > 1 || machine.number("LOCAL_WORLD_SIZE").value_or(1) > 1;
  constexpr std::uint64_t enough = 128ULL << 20;
  if (machine.sharedMemory == 0 || machine.sharedMemory >= enough || !several || machine.driver.gpus.empty())
    return;
  diagnosis.warn(kTopic, "shared-memory",
                 fmt::format("/dev/shm has {} only: NCCL and data loaders with workers run out of it",
                             formatBytes(machine.sharedMemory)),
                 "start the container with --shm-size 8g or --ipc host");
}

} // namespace

void checkCommunication(const Machine &machine, Diagnosis &diagnosis) {
  for (const auto &[name, value] : machine.environment)
    if (name.rfind("NCCL_", 0) == 0)
      checkName(name, machine, diagnosis);
  checkInterfaces("NCCL_SOCKET_IFNAME", machine, /*prefixes=*/true, diagnosis);
  checkInterfaces("GLOO_SOCKET_IFNAME", machine, /*prefixes=*/false, diagnosis);
  checkSlowPaths(machine, diagnosis);
  checkSharedGpus(machine, diagnosis);
  checkDebugLevel(machine, diagnosis);
  checkSharedMemory(machine, diagnosis);
}

void checkPackages(const Machine &machine, Diagnosis &diagnosis) {
  for (const Package &package : machine.packages) {
    const std::string what = fmt::format("{} {} in {}", package.name, package.version.text, package.folder);
    if (hasClippingBug(package))
      diagnosis.warn("packages", "deepspeed-clipping",
                     what +
                         ": with an offloaded optimizer it fails as soon as gradients are clipped ('found at "
                         "least two devices, cuda:0 and cpu', in unscale_and_clip_grads)",
                     "update DeepSpeed: pip install -U 'deepspeed>=0.14.5'");
    else if (package.name.rfind("nvidia_", 0) != 0)
      diagnosis.ok("packages", package.name, what);
  }
}

bool hasClippingBug(const Package &package) {
  return package.name == "deepspeed" &&
         (package.version.sameRelease(0, 14, 1) || package.version.sameRelease(0, 14, 2));
}

} // namespace devicerun::doctor
