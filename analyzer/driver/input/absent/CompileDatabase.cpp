//===- CompileDatabase.cpp - of a build that reads no C++ ------------------===//
#include "analyzer/driver/input/CompileDatabase.h"

namespace devicetidy::driver {

std::string findDatabase(const std::string &) { return {}; }

bool collectCommands(const SourceRequest &request, config::Configuration &, CommandSet &,
                     std::string &error) {
  error = request.files.empty()
              ? "no files: name Python files, or folders with some"
              : request.files.front() + " is not Python, and this device-tidy reads Python only";
  error += "; one that is built with its C++ front end reads C++, too: see docs/install.md";
  return false;
}

} // namespace devicetidy::driver
