//===- Profile.h - where the time went, for a trace viewer ------*- C++ -*-===//
//
// All parts of the program mark their work with llvm::TimeTraceScope, as clang and LLVM do. The marks cost
// nothing unless a Profile records them.
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

  /// Writes the file. Returns an error message, or empty.
  std::string write();

  static bool isActive();

  /// Records the current thread while it lives, if there is a Profile.
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
