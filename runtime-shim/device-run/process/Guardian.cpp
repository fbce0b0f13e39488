#include "process/Guardian.h"

#include "base/Descendants.h"
#include "base/RunError.h"
#include "base/Text.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace devicerun {
namespace {

constexpr int kKillMilliseconds = 5000;

void removeScratch(const std::string &scratch) {
  std::error_code ignored;
  if (!scratch.empty())
    std::filesystem::remove_all(scratch, ignored);
}

[[noreturn]] void runJob(pid_t guardian, const std::string &scratch, const std::function<int()> &job) {
  prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
  becomeSubreaper();
  if (getppid() != guardian)
    _exit(ExitSignalBase + SIGTERM); // it died before it could be watched
  int code = job();
  removeScratch(scratch);
  std::exit(code);
}

/// Waits for the job and passes signals on.
int waitForJob(pid_t job) {
  const sigset_t set = handledSignals();
  for (;;) {
    siginfo_t info{};
    if (sigwaitinfo(&set, &info) < 0)
      continue;
    // The terminal sends Ctrl-C to the whole process group, the job included.
    if (info.si_signo != SIGCHLD) {
      if (info.si_code != SI_KERNEL)
        kill(job, info.si_signo);
      continue;
    }
    int status = 0;
    for (pid_t pid = waitpid(-1, &status, WNOHANG); pid > 0; pid = waitpid(-1, &status, WNOHANG))
      if (pid == job)
        return status;
  }
}

} // namespace

int runGuarded(const SignalBlock &signals, const std::string &scratch, const std::function<int()> &job) {
  becomeSubreaper();
  pid_t guardian = getpid();
  std::fflush(nullptr);
  pid_t child = fork();
  if (child < 0) {
    removeScratch(scratch);
    throw RunError(ExitLauncher, fmt::format("cannot start a process: {}", std::strerror(errno)));
  }
  if (child == 0)
    runJob(guardian, scratch, job);
  int status = waitForJob(child);
  bool clean = killDescendants(kKillMilliseconds);
  removeScratch(scratch);
  if (!clean)
    fmt::print(stderr, "device-run: some processes do not end although they were killed (blocked in a system "
                       "call?); see ps\n");
  if (WIFEXITED(status))
    return WEXITSTATUS(status);
  signals.restore();
  fmt::print(stderr, "device-run: the launcher was ended by {}; its ranks were killed\n",
             describeSignal(WTERMSIG(status)));
  return ExitSignalBase + WTERMSIG(status);
}

} // namespace devicerun
