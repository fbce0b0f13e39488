#include "analyzer/lsp/EditorProcess.h"

#include "analyzer/driver/commands/Run.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <limits>

namespace devicetidy::lsp {
namespace {

constexpr std::chrono::seconds Interval{2};

/// A process of another user counts too.
bool isAlive(pid_t id) { return kill(id, 0) == 0 || errno == EPERM; }

} // namespace

EditorProcess::~EditorProcess() {
  if (!thread.joinable())
    return;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    isEnding = true;
  }
  wake.notify_all();
  thread.join();
}

void EditorProcess::follow(std::int64_t id) {
  // Zero and less would be groups of processes.
  if (thread.joinable() || id <= 0 || id > std::numeric_limits<pid_t>::max())
    return;
  if (const auto process = static_cast<pid_t>(id); isAlive(process))
    thread = std::thread([this, process] { loop(process); });
}

void EditorProcess::loop(pid_t id) {
  std::unique_lock<std::mutex> lock(mutex);
  while (isAlive(id))
    if (wake.wait_for(lock, Interval, [this] { return isEnding; }))
      return;
  std::raise(SIGTERM); // temporary directories go with it; the input cannot be left otherwise
  std::_Exit(static_cast<int>(driver::ExitCode::Findings));
}

} // namespace devicetidy::lsp
