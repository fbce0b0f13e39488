//===- Profile.h - where the time went, for a trace viewer ------*- C++ -*-===//
//
// Any part of the program marks its work with llvm::TimeTraceScope; clang and LLVM do so, too. What is marked
// costs nothing unless a Profile is there to record it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>

namespace devicetidy::driver {

/// Records marked work until it is written, as trace events that chrome://tracing and Perfetto show.
class Profile {
public:
  /// Starts to record, unless `file` is empty. `error` receives a sentence when `file` cannot be written.
  Profile(std::string file, std::string &error);
  ~Profile();

  /// Writes the file. The sentence that says why not, or empty.
  std::string write();

  static bool isActive();

  /// Records the thread it lives in, when there is something to record for.
  class Thread {
  public:
    Thread(bool isProfiled, bool runsClang);
    ~Thread();

  private:
    bool isProfiled;
  };

private:
  std::string file;
  bool isWritten = false;
};

} // namespace devicetidy::driver
