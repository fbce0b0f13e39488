#include "analyzer/driver/ReadUnits.h"

#include "analyzer/frontend/Lower.h"

#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace devicetidy::driver {
namespace {

// A parser and a graph builder that call themselves need room: ten thousand `else if` in a row are legal C++.
constexpr unsigned StackBytes = 512u << 20;

// What one parse of LibTorch's headers takes at most.
constexpr std::uint64_t BytesPerJob = 1u << 30;

unsigned defaultJobs() {
  const long pages = sysconf(_SC_PHYS_PAGES), pageSize = sysconf(_SC_PAGESIZE);
  const std::uint64_t memory = pages > 0 && pageSize > 0
                                   ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(pageSize)
                                   : BytesPerJob;
  const auto byMemory = static_cast<unsigned>(std::min<std::uint64_t>(memory / BytesPerJob, 1024));
  return std::max(1u, std::min(std::thread::hardware_concurrency(), byMemory));
}

/// "[3/20] file" on one line of the terminal.
class Progress {
public:
  Progress(bool isShown, std::size_t total) : isShown(isShown), total(total) {}
  ~Progress() {
    if (isShown)
      llvm::errs() << "\r\033[K";
  }

  void start(const std::string &file) {
    if (!isShown)
      return;
    std::lock_guard<std::mutex> lock(mutex);
    llvm::errs() << "\r\033[K[" << ++started << '/' << total << "] " << llvm::sys::path::filename(file);
  }

private:
  const bool isShown;
  const std::size_t total;
  std::size_t started = 0;
  std::mutex mutex;
};

Unit readUnit(const CompileCommand &command, const frontend::LowerOptions &options) {
  Unit unit;
  const bool isFine = runGuarded([&] {
    unit = frontend::lowerTranslationUnit(command.directory, command.file, command.arguments, options);
  });
  if (!isFine) {
    unit = {};
    unit.hasFatalError = true;
    unit.parseErrors.push_back(command.file + ":1:1: the analyzer itself failed on this file");
  }
  if (!unit.mainFile)
    unit.mainFile = command.file;
  return unit;
}

} // namespace

bool runGuarded(const std::function<void()> &work) {
  llvm::CrashRecoveryContext::Enable();
  llvm::CrashRecoveryContext context;
  return context.RunSafelyOnThread([&] { work(); }, StackBytes);
}

std::vector<Unit> readUnits(const std::vector<CompileCommand> &commands, const ProjectFiles &project,
                            const ReadOptions &options) {
  frontend::LowerOptions lowerOptions;
  lowerOptions.isProjectFile = [&project](const std::string &path) { return project.isProject(path); };
  std::vector<Unit> units(commands.size());
  Progress progress(options.showProgress, commands.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < commands.size(); i = next++) {
      progress.start(commands[i].file);
      units[i] = readUnit(commands[i], lowerOptions);
    }
  };
  const std::size_t jobs =
      std::min<std::size_t>(options.jobs ? options.jobs : defaultJobs(), commands.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < jobs; ++i)
    threads.emplace_back(work);
  for (std::thread &thread : threads)
    thread.join();
  return units;
}

} // namespace devicetidy::driver
