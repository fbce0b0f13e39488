//===- OutputQueue.h - writes without blocking ------------------*- C++ -*-===//
//
// Queues output for a descriptor that may be slow.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>
#include <string_view>

namespace devicerun {

/// Bytes on their way to a descriptor of ours. A reader that stalls (a pager, a full pipe) must not keep the
/// launcher from noticing that a rank died, so bytes wait here until poll() says they can be written.
class OutputQueue {
public:
  explicit OutputQueue(int descriptor) : descriptor(descriptor) {}

  std::string &buffer() { return waiting; }
  bool empty() const { return written == waiting.size(); }
  /// So much is waiting that the ranks should be read from no more for now.
  bool full() const { return waiting.size() - written > (std::size_t{4} << 20); }
  int fd() const { return descriptor; }
  /// The reader is gone; what is queued is dropped.
  bool broken() const { return closed; }
  /// Why it is broken, as errno gives it: EPIPE when the reader is gone; 0 while it is not.
  int error() const { return failure; }

  /// Writes what can be written at once.
  void flush();
  /// Writes all of it, however long the reader takes.
  void drain();

private:
  bool writable(int milliseconds) const;

  int descriptor;
  std::string waiting;
  std::size_t written = 0;
  bool closed = false;
  int failure = 0;
};

} // namespace devicerun
