#include "analyzer/driver/support/Parallel.h"

#include "analyzer/driver/support/Profile.h"

#include "llvm/ADT/Twine.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/Threading.h"
#include "llvm/Support/thread.h"

#include <algorithm>
#include <atomic>
#include <vector>

namespace devicetidy::driver {
namespace {

// A parser and a graph builder that call themselves need room: ten thousand `else if` in a row are legal C++.
constexpr unsigned StackBytes = 512u << 20;

thread_local bool hasDeepStack = false;

const char *nameOf(Task task) {
  static constexpr const char *names[] = {"cache", "parser", "loader", "solver"};
  return names[static_cast<std::size_t>(task)];
}

} // namespace

void inParallel(Task task, std::size_t count, unsigned jobs, const std::function<void(std::size_t)> &work) {
  const bool isProfiled = Profile::isActive();
  std::atomic<std::size_t> next{0};
  const auto loop = [&] {
    hasDeepStack = true;
    llvm::set_thread_name(nameOf(task));
    const Profile::Thread profiled(isProfiled, task == Task::Parse);
    for (std::size_t i = next++; i < count; i = next++)
      work(i);
  };
  std::vector<llvm::thread> threads;
  for (std::size_t i = 0; i < std::min<std::size_t>(std::max(jobs, 1u), count); ++i)
    threads.emplace_back(std::optional<unsigned>(StackBytes), loop);
  for (llvm::thread &thread : threads)
    thread.join();
}

bool runGuarded(const std::function<void()> &work) {
  llvm::CrashRecoveryContext::Enable();
  llvm::CrashRecoveryContext context;
  if (hasDeepStack)
    return context.RunSafely([&] { work(); });
  return context.RunSafelyOnThread([&] { work(); }, StackBytes);
}

} // namespace devicetidy::driver
