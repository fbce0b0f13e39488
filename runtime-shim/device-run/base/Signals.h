//===- Signals.h - signals as events to poll --------------------*- C++ -*-===//
//
// Receives signals through a descriptor, so that one poll() waits for signals and output.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <csignal>
#include <optional>

namespace devicerun {

/// The signals the launcher acts on: SIGCHLD, and SIGINT, SIGTERM, SIGHUP and SIGQUIT, which end the job. Not
/// SIGHUP under nohup.
sigset_t handledSignals();

/// Whether this process ignores a signal, and with it what it starts: under nohup, or behind a shell's &.
bool isIgnored(int signal);

/// A signal that has come.
struct ReceivedSignal {
  int number = 0;
  bool fromTerminal = false; ///< by Ctrl-C or similar, so that the whole process group receives it
};

/// Blocks the handled signals for this process and remembers how things were, so that ranks can be started
/// with what the launcher was started with. SIGPIPE is ignored meanwhile: a closed output must not end the
/// process before the ranks did.
class SignalBlock {
public:
  SignalBlock();
  SignalBlock(const SignalBlock &) = delete;
  SignalBlock &operator=(const SignalBlock &) = delete;

  /// Back to what it was, for the rest of this process or for the program it is about to become.
  void restore() const;

private:
  sigset_t previousMask{};
  struct sigaction previousPipe{};
};

/// A descriptor that polls as readable when one of the handled signals has come; they must be blocked.
class SignalSource {
public:
  /// Throws RunError(ExitLauncher) when the system has no descriptor left.
  SignalSource();
  ~SignalSource();
  SignalSource(const SignalSource &) = delete;
  SignalSource &operator=(const SignalSource &) = delete;

  int fd() const { return descriptor; }
  std::optional<ReceivedSignal> next();

private:
  int descriptor;
};

} // namespace devicerun
