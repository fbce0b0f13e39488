#include "analyzer/driver/Progress.h"

#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <fmt/format.h>

namespace devicetidy::driver {

Progress::~Progress() {
  if (isShown)
    llvm::errs() << "\r\033[K";
}

void Progress::prepare(const std::string &what) {
  if (isShown)
    llvm::errs() << "\r\033[K" << what;
}

void Progress::start(const std::string &name) {
  if (!isShown)
    return;
  const std::lock_guard<std::mutex> lock(mutex);
  const double elapsed = std::chrono::duration<double>(Clock::now() - begin).count();
  llvm::errs() << "\r\033[K" << work << " [" << ++started << '/' << total << "] "
               << timeLeft(elapsed, finished, total) << llvm::sys::path::filename(name);
}

void Progress::finish() {
  const std::lock_guard<std::mutex> lock(mutex);
  ++finished;
}

std::string timeLeft(double elapsed, std::size_t finished, std::size_t total) {
  constexpr double longEnough = 3;
  constexpr std::size_t enough = 2;
  if (elapsed < longEnough || finished < enough || finished >= total)
    return {};
  const double left = elapsed / static_cast<double>(finished) * static_cast<double>(total - finished);
  const auto seconds = static_cast<long>(left + 0.5);
  if (seconds < 90)
    return fmt::format("about {} s left: ", seconds);
  const long minutes = (seconds + 30) / 60;
  return minutes < 90 ? fmt::format("about {} min left: ", minutes)
                      : fmt::format("about {} h {} min left: ", minutes / 60, minutes % 60);
}

} // namespace devicetidy::driver
