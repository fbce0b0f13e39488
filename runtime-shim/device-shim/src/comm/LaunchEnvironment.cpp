#include <device_shim/LaunchEnvironment.h>

#include <device_shim/Error.h>

#include <cerrno>
#include <cstdlib>
#include <optional>

namespace device_shim {
namespace {

const char *const kLaunchers = "start the program with 'torchrun', or 'device-run -n RANKS -- PROGRAM'";

std::optional<std::string> variable(const char *name) {
  const char *text = std::getenv(name);
  if (!text || !*text)
    return std::nullopt;
  return std::string(text);
}

std::optional<int> number(const char *name, int least, int most) {
  const auto text = variable(name);
  if (!text)
    return std::nullopt;
  char *end = nullptr;
  errno = 0;
  const long value = std::strtol(text->c_str(), &end, 10);
  // strtol() would skip blanks in front.
  const bool begins = (*text)[0] == '-' || ((*text)[0] >= '0' && (*text)[0] <= '9');
  if (!begins || errno != 0 || end == text->c_str() || *end != '\0')
    throw InitError(std::string(name) + "='" + *text + "' is not a whole number; " + kLaunchers);
  if (value < least || value > most)
    throw InitError(std::string(name) + "=" + *text + " is not between " + std::to_string(least) + " and " +
                    std::to_string(most) + "; " + kLaunchers);
  return static_cast<int>(value);
}

int required(const char *name, const char *because, int least, int most) {
  if (const auto value = number(name, least, most))
    return *value;
  throw InitError(std::string(because) + " is set, but " + name + " is not; " + kLaunchers +
                  ", which set both, or unset " + because + " to run a single process");
}

constexpr int kMostRanks = 1 << 20;

// What starts several processes and sets neither RANK nor WORLD_SIZE.
struct ProcessLauncher {
  const char *name, *rank, *size;
};
constexpr ProcessLauncher kProcessLaunchers[] = {
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"mpirun_rsh", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
    {"mpiexec", "PMI_RANK", "PMI_SIZE"},
};

long among(const char *name) {
  const auto text = variable(name);
  return text ? std::strtol(text->c_str(), nullptr, 10) : 0;
}

// Each of them would be rank 0 of 1, train alone, and write the same files.
void requireAlone() {
  for (const auto &launcher : kProcessLaunchers)
    if (among(launcher.rank) > 0 || (variable(launcher.rank) && among(launcher.size) > 1))
      throw InitError(
          std::string(launcher.name) + " started several processes, of which this is number " +
          std::to_string(among(launcher.rank)) + " (" + launcher.rank +
          "), but RANK and WORLD_SIZE are not set, so each would train alone; start '" + launcher.name +
          " device-run PROGRAM', which sets them, or set RANK=0 and WORLD_SIZE=1 to have them alone");
}

} // namespace

LaunchEnvironment LaunchEnvironment::from_environment() {
  LaunchEnvironment found;
  const bool hasRank = variable("RANK").has_value(), hasSize = variable("WORLD_SIZE").has_value();
  if (hasRank || hasSize) {
    found.world_size = required("WORLD_SIZE", "RANK", 1, kMostRanks);
    found.rank = required("RANK", "WORLD_SIZE", 0, found.world_size - 1);
  } else {
    requireAlone();
  }
  found.local_world_size = number("LOCAL_WORLD_SIZE", 1, found.world_size).value_or(found.world_size);
  const auto local = number("LOCAL_RANK", 0, found.local_world_size - 1);
  if (!local && found.local_world_size != found.world_size)
    throw InitError("LOCAL_WORLD_SIZE is set, but LOCAL_RANK is not; " + std::string(kLaunchers));
  found.local_rank = local.value_or(found.rank);
  if (found.world_size > 1) {
    const auto address = variable("MASTER_ADDR");
    if (!address)
      throw InitError("WORLD_SIZE is " + std::to_string(found.world_size) +
                      ", but MASTER_ADDR, the host of rank 0, is not set; " + kLaunchers);
    found.master_address = *address;
    found.master_port = required("MASTER_PORT", "MASTER_ADDR", 1, 65535);
  }
  found.agent_holds_store = variable("TORCHELASTIC_USE_AGENT_STORE").value_or("") == "True";
  found.attempt = number("TORCHELASTIC_RESTART_COUNT", 0, 1 << 30).value_or(0);
  return found;
}

} // namespace device_shim
