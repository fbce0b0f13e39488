#include "analyzer/driver/support/Progress.h"

#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Unicode.h"
#include "llvm/Support/raw_ostream.h"

#include <fmt/format.h>

#include <algorithm>

#include <sys/ioctl.h>
#include <unistd.h>

namespace devicetidy::driver {
namespace {

/// The columns of the terminal that standard error is; 0 when it is unknown.
std::size_t columnsShown() {
  winsize size = {};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/// Puts `line` in the place of the one that was shown. What does not fit would begin another line, which
/// nothing clears.
void show(const std::string &line) { llvm::errs() << "\r\033[K" << cutToColumns(line, columnsShown()); }

} // namespace

Progress::~Progress() {
  if (isShown)
    llvm::errs() << "\r\033[K";
}

void Progress::prepare(const std::string &what) {
  if (isShown)
    show(what);
}

void Progress::start(const std::string &name) {
  if (!isShown)
    return;
  const std::lock_guard<std::mutex> lock(mutex);
  const double elapsed = std::chrono::duration<double>(Clock::now() - begin).count();
  ++started;
  show(fmt::format("{} [{}/{}] {}{}", work, started, total, timeLeft(elapsed, finished, total),
                   llvm::sys::path::filename(name).str()));
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

std::string cutToColumns(llvm::StringRef line, std::size_t columns) {
  static constexpr llvm::StringRef dots = "...";
  const auto widthOf = [](llvm::StringRef text) {
    const int width = llvm::sys::unicode::columnWidthUTF8(text);
    return width < 0 ? text.size() : static_cast<std::size_t>(width);
  };
  if (columns == 0 || widthOf(line) < columns) // some terminals go on after the last column
    return line.str();
  const std::size_t wanted = columns > dots.size() ? columns - dots.size() - 1 : 0;
  std::size_t end = 0;
  for (std::size_t used = 0; end < line.size();) {
    const std::size_t length = std::min<std::size_t>(
        llvm::getNumBytesForUTF8(static_cast<llvm::UTF8>(line[end])), line.size() - end);
    used += widthOf(line.substr(end, length));
    if (used > wanted)
      break;
    end += length;
  }
  return line.take_front(end).str() + dots.take_front(columns - 1).str();
}

} // namespace devicetidy::driver
