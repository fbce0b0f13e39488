//===- RankOutput.h - one output stream of a rank ---------------*- C++ -*-===//
//
// Passes the output of a rank on to the terminal and to its log file.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "process/LinePrefixer.h"
#include "process/OutputQueue.h"

#include <string>

namespace devicerun {

/// One of a rank's output streams: from its pipe to ours, with a prefix, to its log file, and the last lines
/// kept for the summary.
class RankOutput {
public:
  static constexpr std::size_t tailLines = 20;

  /// Takes over `descriptor`, the read end of the pipe. An empty `logFile` means none; throws
  /// RunError(ExitLauncher) when the log file cannot be made.
  RankOutput(int descriptor, const std::string &prefix, const std::string &logFile, OutputQueue &queue);
  ~RankOutput();
  RankOutput(const RankOutput &) = delete;
  RankOutput &operator=(const RankOutput &) = delete;

  int fd() const { return descriptor; }
  bool open() const { return descriptor >= 0; }
  bool blocked() const { return queue.full(); }

  /// Reads what is there; closes itself at the end of the stream.
  void receive();
  /// Reads what is left without waiting, then closes.
  void finish();
  const LineTail &tail() const { return last; }

private:
  /// Whether there may be more to read now.
  bool receiveOnce();
  void close();
  void writeLog(std::string_view bytes);

  int descriptor;
  int log = -1;
  LinePrefixer prefixer;
  LineTail last{tailLines};
  OutputQueue &queue;
};

} // namespace devicerun
