#include "analyzer/driver/support/TemporaryDirectory.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"

#include <csignal>
#include <cstring>

#include <unistd.h>

namespace devicetidy::driver {
namespace {

struct Handled {
  int signal;
  struct sigaction before;
};
Handled handled[] = {{SIGINT, {}}, {SIGTERM, {}}, {SIGHUP, {}}};

char endangered[4096]; ///< what the handler removes; empty: nothing

/// A handler may not allocate, so another program does the work.
void removeAndEnd(int signal) {
  if (endangered[0] && fork() == 0) {
    execl("/bin/rm", "rm", "-rf", "--", endangered, static_cast<char *>(nullptr));
    _exit(1);
  }
  for (const Handled &each : handled)
    if (each.signal == signal)
      sigaction(signal, &each.before, nullptr);
  raise(signal);
}

void watchSignals() {
  for (Handled &each : handled) {
    struct sigaction action = {};
    action.sa_handler = removeAndEnd;
    sigemptyset(&action.sa_mask);
    if (sigaction(each.signal, nullptr, &each.before) == 0 && each.before.sa_handler != SIG_IGN)
      sigaction(each.signal, &action, nullptr);
  }
}

} // namespace

std::string makeTemporaryDirectory() {
  llvm::SmallString<128> place;
  if (llvm::sys::fs::createUniqueDirectory("device-tidy", place))
    return {};
  if (place.size() < sizeof endangered && !endangered[0]) {
    std::memcpy(endangered, place.c_str(), place.size() + 1);
    watchSignals();
  }
  return place.str().str();
}

void removeTemporaryDirectory(const std::string &directory) {
  llvm::sys::fs::remove_directories(directory);
  endangered[0] = '\0';
}

} // namespace devicetidy::driver
