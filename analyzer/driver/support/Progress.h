//===- Progress.h - the progress of a long run ------------------*- C++ -*-===//
//
// A line on the terminal that shows how much of the work is done.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "llvm/ADT/StringRef.h"

#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>
#include <utility>

namespace devicetidy::driver {

/// "reading [3/20] about 40 s left: net.cpp" on one line of the terminal that standard error is. The line
/// is removed with the object.
class Progress {
public:
  /// `total` pieces of work, and a word for what is done with each; nothing is written unless `isShown`.
  Progress(bool isShown, std::string work, std::size_t total)
      : isShown(isShown), work(std::move(work)), total(total) {}
  ~Progress();

  /// Shows what is done before the first piece begins.
  void prepare(const std::string &what);
  /// Work on `name`, a file, begins. Thread-safe.
  void start(const std::string &name);
  void finish();

private:
  using Clock = std::chrono::steady_clock;
  const bool isShown;
  const std::string work;
  const std::size_t total;
  const Clock::time_point begin = Clock::now();
  std::size_t started = 0, finished = 0;
  std::mutex mutex;
};

/// The remaining time when `finished` of `total` pieces took `elapsed` seconds: "about 2 min left: ", or
/// nothing as long as an estimate would be unreliable.
std::string timeLeft(double elapsed, std::size_t finished, std::size_t total);

/// `line`, which is UTF-8, cut so that it stays in one line of a terminal with that many columns; 0 for any
/// number.
std::string cutToColumns(llvm::StringRef line, std::size_t columns);

} // namespace devicetidy::driver
