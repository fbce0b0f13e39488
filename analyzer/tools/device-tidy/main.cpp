//===- main.cpp - the device-tidy command -------------------------------------===//
#include "analyzer/driver/commands/Run.h"

#ifdef DEVICE_TIDY_HAS_LSP
#include "analyzer/lsp/Serve.h"
#endif

int main(int argc, char **argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
#ifdef DEVICE_TIDY_HAS_LSP
  const devicetidy::driver::Server serve = devicetidy::lsp::serve;
#else
  const devicetidy::driver::Server serve = nullptr;
#endif
  return static_cast<int>(devicetidy::driver::runCommand(arguments, serve));
}
