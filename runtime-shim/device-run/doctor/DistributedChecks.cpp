#include "doctor/Checks.h"

#include "base/Text.h"

#include <fmt/format.h>

#include <cerrno>
#include <memory>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace devicerun::doctor {
namespace {

constexpr const char *kTopic = "distributed";
const char *const kLaunch = "start the program with torchrun or device-run, which set all of them";

/// The ranks run on more than one machine, as far as the environment says.
bool severalMachines(const Machine &machine) {
  const std::optional<int> local = machine.number("LOCAL_WORLD_SIZE");
  return machine.number("GROUP_WORLD_SIZE").value_or(1) > 1 || (local && *local < machine.worldSize());
}

/// Whether every variable that is set is a whole number.
bool checkNumbers(const Machine &machine, Diagnosis &diagnosis) {
  bool good = true;
  for (const char *name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_PORT"}) {
    std::optional<std::string> text = machine.variable(name);
    if (!text || machine.number(name))
      continue;
    diagnosis.problem(kTopic, "not-a-number", fmt::format("{}='{}' is not a whole number", name, *text),
                      kLaunch);
    good = false;
  }
  return good;
}

/// A value that must be below another.
void checkBelow(const Machine &machine, const char *name, const char *limit, Diagnosis &diagnosis) {
  const std::optional<int> value = machine.number(name), most = machine.number(limit);
  if (value && most && (*value < 0 || *value >= *most))
    diagnosis.problem(kTopic, "rank-out-of-range",
                      fmt::format("{} is {}, but {} is {}: ranks count from 0", name, *value, limit, *most),
                      kLaunch);
}

void checkWithoutRanks(const Machine &machine, Diagnosis &diagnosis) {
  struct Outer {
    const char *size, *rank, *launcher;
  };
  for (const Outer &outer : {Outer{"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "srun"},
                             Outer{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "mpirun"},
                             Outer{"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", "mpirun_rsh"},
                             Outer{"PMI_SIZE", "PMI_RANK", "mpiexec"}})
    if (machine.number(outer.size).value_or(1) > 1 && machine.variable(outer.rank)) {
      diagnosis.warn(
          kTopic, "launcher-without-ranks",
          fmt::format("{} started {} processes, but RANK and WORLD_SIZE are not set: each would train "
                      "alone",
                      outer.launcher, *machine.number(outer.size)),
          fmt::format("put device-run between, which translates: {} ... device-run -- PROGRAM",
                      outer.launcher));
      return;
    }
  if (machine.variable("LOCAL_RANK")) {
    diagnosis.warn(kTopic, "local-rank-alone",
                   "LOCAL_RANK is set without RANK and WORLD_SIZE, perhaps left over in this shell",
                   "unset LOCAL_RANK, or " + std::string(kLaunch));
    return;
  }
  diagnosis.ok(kTopic, "single", "RANK and WORLD_SIZE are not set: a program is the only rank");
}

struct Resolved {
  std::string address; ///< empty: none
  bool loopback = false;
  std::string failure;
};

Resolved resolve(const std::string &host) {
  addrinfo hints{}, *list = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (int status = getaddrinfo(host.c_str(), nullptr, &hints, &list); status != 0)
    return {"", false, gai_strerror(status)};
  std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, freeaddrinfo);
  Resolved found;
  char text[NI_MAXHOST] = "";
  if (getnameinfo(list->ai_addr, list->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0)
    found.address = text;
  if (list->ai_family == AF_INET)
    found.loopback = found.address.rfind("127.", 0) == 0;
  else
    found.loopback = found.address == "::1";
  return found;
}

void checkAddress(const Machine &machine, Diagnosis &diagnosis) {
  const std::optional<std::string> host = machine.variable("MASTER_ADDR");
  if (!host) {
    diagnosis.problem(kTopic, "no-master-addr",
                      fmt::format("WORLD_SIZE is {}, but MASTER_ADDR, the machine of rank 0, is not set",
                                  machine.worldSize()),
                      kLaunch);
    return;
  }
  const Resolved resolved = resolve(*host);
  if (resolved.address.empty()) {
    diagnosis.problem(kTopic, "master-addr-unknown",
                      fmt::format("MASTER_ADDR='{}' has no address here: {}", *host, resolved.failure),
                      "name a host that every machine of the job can look up, or an IP address");
    return;
  }
  const std::string shown =
      resolved.address == *host ? *host : fmt::format("{} ({})", *host, resolved.address);
  if (resolved.loopback && severalMachines(machine))
    diagnosis.problem(
        kTopic, "master-addr-loopback",
        fmt::format("MASTER_ADDR={} is this machine for every machine, but the job has several", shown),
        "use the address of rank 0's machine on the network between them; look for its name in "
        "/etc/hosts");
  else
    diagnosis.ok(kTopic, "master-addr", "MASTER_ADDR=" + shown);
}

/// Whether another program listens on the port on this machine.
bool portInUse(int port) {
  const int handle = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (handle < 0)
    return false;
  const int on = 1;
  setsockopt(handle, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  const bool used =
      bind(handle, reinterpret_cast<sockaddr *>(&address), sizeof address) != 0 && errno == EADDRINUSE;
  close(handle);
  return used;
}

void checkPort(const Machine &machine, Diagnosis &diagnosis) {
  const std::optional<int> port = machine.number("MASTER_PORT");
  if (!port) {
    diagnosis.problem(kTopic, "no-master-port", "MASTER_PORT, where rank 0 listens, is not set", kLaunch);
    return;
  }
  if (*port < 1 || *port > 65535) {
    diagnosis.problem(kTopic, "master-port-range",
                      fmt::format("MASTER_PORT={} is not between 1 and 65535", *port), kLaunch);
    return;
  }
  // torchrun's agent listens there itself.
  const bool agent = machine.variable("TORCHELASTIC_USE_AGENT_STORE").value_or("") == "True";
  if (machine.number("RANK") == 0 && !agent && portInUse(*port))
    diagnosis.problem(kTopic, "master-port-in-use",
                      fmt::format("rank 0 is to listen on MASTER_PORT={}, but another program does", *port),
                      "end that program, perhaps an earlier run, or set MASTER_PORT to a free port");
  else
    diagnosis.ok(kTopic, "master-port", fmt::format("MASTER_PORT={}", *port));
}

void checkAccelerate(const Machine &machine, Diagnosis &diagnosis) {
  // accelerate/accelerator.py, prepare_model()
  if (machine.variable("ACCELERATE_BYPASS_DEVICE_MAP").value_or("") == "true")
    diagnosis.warn(kTopic, "bypass-device-map",
                   "ACCELERATE_BYPASS_DEVICE_MAP=true hides the error about device_map with distributed "
                   "training",
                   "unset it, and load the model without a device_map");
}

} // namespace

void checkDistributed(const Machine &machine, Diagnosis &diagnosis) {
  checkAccelerate(machine, diagnosis);
  if (!checkNumbers(machine, diagnosis))
    return;
  const std::optional<int> rank = machine.number("RANK"), size = machine.number("WORLD_SIZE");
  if (!rank && !size) {
    checkWithoutRanks(machine, diagnosis);
    return;
  }
  if (!rank || !size) {
    diagnosis.problem(
        kTopic, "half-set",
        fmt::format("{} is set, but {} is not", rank ? "RANK" : "WORLD_SIZE", rank ? "WORLD_SIZE" : "RANK"),
        kLaunch);
    return;
  }
  const int before = diagnosis.count(Verdict::Problem);
  checkBelow(machine, "RANK", "WORLD_SIZE", diagnosis);
  // Without LOCAL_WORLD_SIZE all ranks may be on this machine.
  checkBelow(machine, "LOCAL_RANK", machine.number("LOCAL_WORLD_SIZE") ? "LOCAL_WORLD_SIZE" : "WORLD_SIZE",
             diagnosis);
  if (machine.number("LOCAL_WORLD_SIZE").value_or(1) > *size)
    diagnosis.problem(kTopic, "local-world-size",
                      fmt::format("LOCAL_WORLD_SIZE is {}, more than WORLD_SIZE, {}",
                                  *machine.number("LOCAL_WORLD_SIZE"), *size),
                      kLaunch);
  if (!machine.variable("LOCAL_RANK"))
    diagnosis.warn(kTopic, "no-local-rank",
                   "LOCAL_RANK is not set: programs take RANK in its place, which names no GPU on the second "
                   "machine, or cuda:0 in every rank",
                   kLaunch);
  if (diagnosis.count(Verdict::Problem) == before)
    diagnosis.ok(kTopic, "ranks", fmt::format("rank {} of {}", *rank, *size));
  if (*size > 1) {
    checkAddress(machine, diagnosis);
    checkPort(machine, diagnosis);
  }
}

} // namespace devicerun::doctor
