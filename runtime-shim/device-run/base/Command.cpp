#include "base/Command.h"

#include "base/Environment.h"

#include <array>
#include <cerrno>

#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace devicerun {
namespace {

std::vector<char *> pointers(std::vector<std::string> &strings) {
  std::vector<char *> list;
  list.reserve(strings.size() + 1);
  for (std::string &text : strings)
    list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

pid_t spawn(const std::vector<std::string> &command, int input, int output) {
  Environment environment = currentEnvironment();
  environment.erase("LD_PRELOAD");
  std::vector<std::string> argumentStrings = command;
  std::vector<std::string> environmentStrings = toStrings(environment);
  std::vector<char *> arguments = pointers(argumentStrings);
  std::vector<char *> variables = pointers(environmentStrings);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t pid = -1;
  if (posix_spawnp(&pid, command.front().c_str(), &actions, nullptr, arguments.data(), variables.data()) != 0)
    pid = -1;
  posix_spawn_file_actions_destroy(&actions);
  return pid;
}

/// Writes and reads at the same time: either pipe may be full.
std::string exchange(int toChild, int fromChild, std::string_view input) {
  std::string output;
  std::array<char, 1 << 16> block; // NOLINT(cppcoreguidelines-pro-type-member-init): read() fills it
  fcntl(toChild, F_SETFL, O_NONBLOCK);
  for (;;) {
    if (input.empty() && toChild >= 0) {
      close(toChild);
      toChild = -1;
    }
    std::array<pollfd, 2> polled = {{{fromChild, POLLIN, 0}, {toChild, POLLOUT, 0}}};
    if (poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR)
      break;
    if (polled[1].revents) {
      ssize_t done = write(toChild, input.data(), input.size());
      if (done >= 0)
        input.remove_prefix(static_cast<std::size_t>(done));
      else if (errno != EAGAIN && errno != EINTR)
        input = {};
    }
    if (polled[0].revents) {
      ssize_t count = read(fromChild, block.data(), block.size());
      if (count == 0 || (count < 0 && errno != EINTR))
        break;
      if (count > 0)
        output.append(block.data(), static_cast<std::size_t>(count));
    }
  }
  if (toChild >= 0)
    close(toChild);
  return output;
}

} // namespace

std::string outputOf(const std::vector<std::string> &command, const std::string &input) {
  std::array<int, 2> in{}, out{};
  if (pipe2(in.data(), O_CLOEXEC) != 0)
    return "";
  if (pipe2(out.data(), O_CLOEXEC) != 0) {
    close(in[0]);
    close(in[1]);
    return "";
  }
  auto *previous = signal(SIGPIPE, SIG_IGN);
  pid_t pid = spawn(command, in[0], out[1]);
  close(in[0]);
  close(out[1]);
  std::string output;
  if (pid > 0) {
    output = exchange(in[1], out[0], input);
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR)
      continue;
  } else {
    close(in[1]);
  }
  close(out[0]);
  signal(SIGPIPE, previous);
  return output;
}

} // namespace devicerun
