//===- AtomicFile.h - writes complete files ---------------------*- C++ -*-===//
//
// Writes files so that readers never see a part of one.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <fstream>
#include <string>

namespace devicerun {

/// Writes next to `path` and replaces it with commit(); without commit() nothing remains.
class AtomicFile {
public:
  /// Throws RunError(ExitLauncher) when nothing can be written there.
  explicit AtomicFile(const std::string &path);
  ~AtomicFile();
  AtomicFile(const AtomicFile &) = delete;
  AtomicFile &operator=(const AtomicFile &) = delete;

  std::ostream &stream() { return out; }
  /// Throws RunError(ExitLauncher) when not everything could be written.
  void commit();

private:
  std::string path;
  std::string temporary;
  std::ofstream out;
};

} // namespace devicerun
