#include "process/RankProcess.h"

#include "base/RunError.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace devicerun {
namespace {

/// A pipe that closes what is left of it.
class Pipe {
public:
  Pipe() {
    if (pipe2(ends.data(), O_CLOEXEC) != 0)
      throw RunError(ExitLauncher,
                     fmt::format("cannot make a pipe: {}; see ulimit -n", std::strerror(errno)));
  }
  ~Pipe() {
    closeEnd(0);
    closeEnd(1);
  }
  Pipe(const Pipe &) = delete;
  Pipe &operator=(const Pipe &) = delete;

  int readEnd() const { return ends[0]; }
  int writeEnd() const { return ends[1]; }
  int takeReadEnd() {
    int end = ends[0];
    ends[0] = -1;
    fcntl(end, F_SETFL, fcntl(end, F_GETFL) | O_NONBLOCK);
    return end;
  }
  void closeEnd(std::size_t which) {
    if (ends[which] >= 0)
      close(ends[which]);
    ends[which] = -1;
  }

private:
  std::array<int, 2> ends{-1, -1};
};

std::vector<char *> pointers(const std::vector<std::string> &strings) {
  std::vector<char *> list;
  list.reserve(strings.size() + 1);
  for (const std::string &text : strings)
    list.push_back(const_cast<char *>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

struct Streams {
  int out;
  int err;
};

/// In the child, between fork and exec: only calls that are safe there.
[[noreturn]] void becomeRank(const RankCommand &command, char *const *arguments, char *const *environment,
                             pid_t launcher, const SignalBlock &signals, const Streams *streams,
                             int failure) {
  if (command.ownGroup)
    setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (getppid() != launcher)
    _exit(ExitSignalBase + SIGKILL);
  if (streams) {
    if (!command.keepInput) {
      int nothing = open("/dev/null", O_RDONLY);
      dup2(nothing, STDIN_FILENO);
      close(nothing);
    }
    dup2(streams->out, STDOUT_FILENO);
    dup2(streams->err, STDERR_FILENO);
  }
  signals.restore();
  execve(command.file.c_str(), arguments, environment);
  int error = errno;
  if (write(failure, &error, sizeof error) < 0)
    _exit(ExitLauncher);
  _exit(ExitNotFound);
}

[[noreturn]] void reportExecError(const std::string &file, int error) {
  switch (error) {
  case ENOENT: // the file is there, it was looked up before
    throw RunError(
        ExitNotFound,
        fmt::format("cannot run {}: the interpreter it names does not exist; see the first line of a "
                    "script, or `file {}`",
                    file, file));
  case ENOEXEC:
    throw RunError(
        ExitNotExecutable,
        fmt::format("cannot run {}: it is neither a program for this machine nor a script that starts "
                    "with #!; run it with its interpreter: device-run -- INTERPRETER {}",
                    file, file));
  case E2BIG:
    throw RunError(ExitNotExecutable,
                   fmt::format("cannot run {}: arguments and environment are too long", file));
  default:
    throw RunError(ExitNotExecutable, fmt::format("cannot run {}: {}", file, std::strerror(error)));
  }
}

} // namespace

RankProcess startRank(const RankCommand &command, const SignalBlock &signals) {
  std::vector<char *> arguments = pointers(command.arguments);
  std::vector<char *> environment = pointers(command.environment);
  Pipe out, err, failure;
  Streams streams{out.writeEnd(), err.writeEnd()};
  pid_t launcher = getpid();
  pid_t pid = fork();
  if (pid < 0)
    throw RunError(ExitLauncher, fmt::format("cannot start a rank: {}; see ulimit -u", std::strerror(errno)));
  if (pid == 0)
    becomeRank(command, arguments.data(), environment.data(), launcher, signals,
               command.captured ? &streams : nullptr, failure.writeEnd());
  if (command.ownGroup)
    setpgid(pid, pid); // here too, so that the group exists before anybody signals it
  failure.closeEnd(1);
  int error = 0;
  ssize_t count = 0;
  do
    count = read(failure.readEnd(), &error, sizeof error);
  while (count < 0 && errno == EINTR);
  if (count == static_cast<ssize_t>(sizeof error)) {
    waitpid(pid, nullptr, 0);
    reportExecError(command.file, error);
  }
  if (!command.captured)
    return {pid, -1, -1};
  return {pid, out.takeReadEnd(), err.takeReadEnd()};
}

} // namespace devicerun
