//===- Doctor.h - the command device-run doctor -----------------*- C++ -*-===//
//
// The options of the command and the function that runs it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>
#include <vector>

namespace devicerun::doctor {

/// The command line after `doctor`.
struct DoctorOptions {
  bool json = false;
  bool strict = false; ///< warnings count like problems for the exit code
  bool help = false;
  std::string program;                   ///< the program whose LibTorch is checked
  std::vector<std::string> sitePackages; ///< folders of Python packages
  std::vector<std::string> files;        ///< configuration files
};

/// Throws RunError(ExitUsage) that names the argument.
DoctorOptions parseDoctorOptions(const std::vector<std::string> &arguments);

/// Examines this machine, the environment and the files named, and prints the report on standard output.
/// The exit code: 0 without problems, 1 with some. Throws RunError(ExitUsage) for files that cannot be read.
int runDoctor(const std::vector<std::string> &arguments);

} // namespace devicerun::doctor
