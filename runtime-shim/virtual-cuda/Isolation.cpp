#include "Isolation.h"

#include "Blocks.h"
#include "ErrorRecords.h"
#include "HostMemory.h"
#include "Origins.h"

#include <c10/util/StringUtil.h>

#include <signal.h>
#include <unistd.h>

#include <mutex>
#include <string>

namespace vcuda {
namespace {

struct sigaction previousHandler;

std::string describeFault(const BlockInfo &block, const c10::optional<Origin> &origin) {
  if (block.device < 0)
    return "host code used an address of device memory that is not in use (freed, or outside a tensor)";
  std::string text = c10::str("host code used memory of a tensor on cuda:", block.device, ": byte ",
                              block.offset, " of ", block.bytes, " bytes");
  if (!origin)
    return text;
  text += c10::str(", ", origin->moved ? "moved there" : "created", " by ",
                   origin->op.empty() ? "an allocation" : origin->op);
  std::string place = readablePlace(origin->stack);
  return place.empty() ? text : text + " in " + place;
}

// The program is about to end because of its own access, outside of this library: what is not safe in
// signal handlers in general (allocating) is worth the risk for saying why.
void reportFault(const void *address) {
  BlockInfo block = findBlockInSignal(address);
  c10::optional<Origin> origin;
  if (block.device >= 0)
    origin = originOf(static_cast<const char *>(hostAddress(address)) - block.offset);
  std::string text = "virtual-cuda: " + describeFault(block, origin);
  std::string help = text;
  std::string place = readablePlace(CallStack::ofCaller());
  if (!place.empty())
    help += "\n  accessed in " + place;
  help += "\n  a GPU's memory is not the host's; copy the tensor first, with .cpu() or .to(torch::kCPU)\n";
  if (write(STDERR_FILENO, help.data(), help.size()) >= 0)
    recordHostAccess(text, block.device, origin);
}

void passOn(int signal, siginfo_t *info, void *context) {
  if (previousHandler.sa_flags & SA_SIGINFO) {
    previousHandler.sa_sigaction(signal, info, context);
  } else if (previousHandler.sa_handler != SIG_DFL && previousHandler.sa_handler != SIG_IGN) {
    previousHandler.sa_handler(signal);
  } else {
    // Returning repeats the access, which then ends the program the usual way. A signal that was sent, as
    // by kill(), is not repeated.
    sigaction(signal, &previousHandler, nullptr);
    if (info->si_code <= 0)
      raise(signal);
  }
}

void onFault(int signal, siginfo_t *info, void *context) {
  static thread_local bool reporting = false;
  static thread_local const void *reported = nullptr;
  // Addresses the kernel does not tell (general protection faults) come as 0.
  bool ours = info->si_code > 0 && isVisibleArena(info->si_addr);
  // The program's handler may have put this one back to end the program with the default action.
  if (ours && info->si_addr == reported) {
    ::signal(signal, SIG_DFL);
    return;
  }
  if (ours && !reporting) {
    reporting = true;
    reportFault(info->si_addr);
    reporting = false;
    reported = info->si_addr;
  }
  passOn(signal, info, context);
}

bool isOwnHandler(const struct sigaction &handler) {
  return (handler.sa_flags & SA_SIGINFO) && handler.sa_sigaction == &onFault;
}

} // namespace

void installFaultHandler() {
  struct sigaction now{};
  if (sigaction(SIGSEGV, nullptr, &now) != 0 || isOwnHandler(now))
    return;
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  static const bool prepared = (prepareCallStacks(), true);
  static_cast<void>(prepared);
  struct sigaction handler{};
  handler.sa_sigaction = &onFault;
  handler.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&handler.sa_mask);
  if (sigaction(SIGSEGV, nullptr, &now) != 0 || isOwnHandler(now))
    return;
  // First: the handler may be needed as soon as it is there.
  previousHandler = now;
  sigaction(SIGSEGV, &handler, nullptr);
}

} // namespace vcuda
