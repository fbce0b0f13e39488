#include "base/Signals.h"

#include "base/RunError.h"

#include <cerrno>
#include <cstring>
#include <string>

#include <sys/signalfd.h>
#include <unistd.h>

namespace devicerun {

sigset_t handledSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGCHLD, SIGINT, SIGTERM, SIGQUIT})
    sigaddset(&set, signal);
  // A blocked signal comes even where it is ignored.
  if (!isIgnored(SIGHUP))
    sigaddset(&set, SIGHUP);
  return set;
}

bool isIgnored(int signal) {
  struct sigaction now{};
  return sigaction(signal, nullptr, &now) == 0 && !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_IGN;
}

SignalBlock::SignalBlock() {
  sigset_t set = handledSignals();
  sigprocmask(SIG_BLOCK, &set, &previousMask);
  struct sigaction ignore{};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &previousPipe);
}

void SignalBlock::restore() const {
  sigaction(SIGPIPE, &previousPipe, nullptr);
  sigprocmask(SIG_SETMASK, &previousMask, nullptr);
}

SignalSource::SignalSource() {
  sigset_t set = handledSignals();
  descriptor = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (descriptor < 0)
    throw RunError(ExitLauncher, std::string("cannot watch for signals: ") + std::strerror(errno));
}

SignalSource::~SignalSource() { close(descriptor); }

std::optional<ReceivedSignal> SignalSource::next() {
  signalfd_siginfo info{};
  if (read(descriptor, &info, sizeof info) != static_cast<ssize_t>(sizeof info))
    return std::nullopt;
  return ReceivedSignal{static_cast<int>(info.ssi_signo), info.ssi_code == SI_KERNEL};
}

} // namespace devicerun
