//===- RecordFile.h - files of JSON lines -----------------------*- C++ -*-===//
//
// Files of JSON lines that the launcher reads. Their names and contents are the contract in
// runtime-shim/device-run/CONTRACT.md.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <mutex>
#include <string>

namespace vcuda {

/// One file per process; after fork() the child writes to one of its own.
class RecordFile {
public:
  /// kind: "errors", "trace" or "reached". Nothing is opened before the first line.
  RecordFile(const char *directory, const char *kind) : directory_(directory), kind_(kind) {}

  /// At once, with one write().
  void write(std::string line);

  /// Soon: kept until flush(), or until the buffer is full.
  void add(std::string line);
  void flush();

  /// Around fork(): nothing is left in the buffer for the child to write again.
  void beforeFork();
  void afterForkInParent();
  void afterForkInChild();

private:
  bool open();
  void writeOut(const std::string &text);

  const char *directory_;
  const char *kind_;
  std::mutex mutex_;
  int file_ = -1;
  bool failed_ = false;
  std::string buffer_;
};

} // namespace vcuda
