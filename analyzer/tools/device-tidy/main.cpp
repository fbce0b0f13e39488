//===- main.cpp - the device-tidy command -------------------------------------===//
#include "analyzer/driver/Run.h"

int main(int argc, char **argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return static_cast<int>(devicetidy::driver::runCommand(arguments));
}
