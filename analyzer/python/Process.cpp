#include "analyzer/python/Process.h"

#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

extern char **environ;

namespace devicetidy::python {
namespace {

constexpr int stopInterval = 20; ///< milliseconds between two looks at `stop`

/// Two ends of a connection; closed at the end of the scope.
struct Channel {
  // Sockets: writing to a program that has ended must not end this one.
  Channel() { isOpen = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0; }
  ~Channel() {
    closeEnd(0);
    closeEnd(1);
  }
  Channel(const Channel &) = delete;
  Channel &operator=(const Channel &) = delete;

  void closeEnd(int which) {
    if (ends[which] >= 0)
      close(ends[which]);
    ends[which] = -1;
  }
  int ours() const { return ends[0]; }
  int theirs() const { return ends[1]; }

  int ends[2] = {-1, -1};
  bool isOpen = false;
};

// Appends what is there; closes the channel at its end.
void receive(Channel &channel, std::string &text) {
  char buffer[1 << 16];
  const ssize_t count = read(channel.ours(), buffer, sizeof buffer);
  if (count > 0)
    text.append(buffer, static_cast<std::size_t>(count));
  else if (count == 0 || errno != EINTR)
    channel.closeEnd(0);
}

// Sends a part of `input` from `sent` on; closes the channel when all is sent or nobody reads.
void sendPart(Channel &channel, const std::string &input, std::size_t &sent) {
  const ssize_t count =
      send(channel.ours(), input.data() + sent, input.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (count > 0)
    sent += static_cast<std::size_t>(count);
  const bool isLater = count < 0 && (errno == EAGAIN || errno == EINTR);
  if (sent == input.size() || (count < 0 && !isLater))
    channel.closeEnd(0);
}

int statusOf(int waited) { return WIFEXITED(waited) ? WEXITSTATUS(waited) : 128 + WTERMSIG(waited); }

} // namespace

bool run(const std::string &program, const std::vector<std::string> &arguments, const std::string &input,
         const std::atomic<bool> *stop, Answer &answer, std::string &error) {
  Channel in, out, problems;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.theirs(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.theirs(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, problems.theirs(), STDERR_FILENO);
  std::vector<char *> argv = {const_cast<char *>(program.c_str())};
  for (const std::string &argument : arguments)
    argv.push_back(const_cast<char *>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t child = -1;
  int failure = in.isOpen && out.isOpen && problems.isOpen ? 0 : errno;
  if (failure == 0)
    failure = posix_spawn(&child, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) {
    error = program + " cannot be started: " + std::strerror(failure);
    return false;
  }
  for (Channel *each : {&in, &out, &problems})
    each->closeEnd(1);
  std::size_t sent = 0;
  if (input.empty())
    in.closeEnd(0);
  while (out.ours() >= 0 || problems.ours() >= 0) {
    pollfd watched[] = {
        {in.ours(), POLLOUT, 0}, {out.ours(), POLLIN, 0}, {problems.ours(), POLLIN, 0}}; // -1 is passed over
    poll(watched, 3, stop ? stopInterval : -1);
    if (stop && *stop) {
      answer.isStopped = true;
      kill(child, SIGKILL);
      break;
    }
    if (watched[0].revents)
      sendPart(in, input, sent);
    if (watched[1].revents)
      receive(out, answer.output);
    if (watched[2].revents)
      receive(problems, answer.problems);
  }
  int waited = 0;
  while (waitpid(child, &waited, 0) < 0 && errno == EINTR) {
  }
  answer.status = statusOf(waited);
  return true;
}

} // namespace devicetidy::python
