#include "process/LauncherProcess.h"

#include "base/Descendants.h"

#include <fstream>
#include <string>

#include <unistd.h>

namespace devicerun {
namespace {

/// Whether a process was started with the number of a rank.
bool isRank(pid_t pid) {
  std::ifstream environment("/proc/" + std::to_string(pid) + "/environ", std::ios::binary);
  for (std::string entry; std::getline(environment, entry, '\0');)
    for (const char *variable : {"PMI_RANK=", "OMPI_COMM_WORLD_RANK=", "MV2_COMM_WORLD_RANK="})
      if (entry.rfind(variable, 0) == 0)
        return true;
  return false;
}

} // namespace

pid_t launcherProcess() {
  pid_t pid = getppid();
  while (pid > 1 && isRank(pid))
    pid = livingParent("/proc/" + std::to_string(pid) + "/stat");
  return pid;
}

} // namespace devicerun
