//===- main.cpp - device-run -------------------------------------------------===//
#include "base/RunError.h"
#include "doctor/Doctor.h"
#include "launch/Job.h"
#include "process/Guardian.h"
#include "process/LauncherProcess.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <filesystem>

#include <unistd.h>

namespace {

using namespace devicerun;

std::string ownPath() {
  std::error_code error;
  std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string() : path.string();
}

/// Runs `action` and turns its exceptions into messages and exit codes.
template <typename Action> int guarded(Action action) {
  try {
    return action();
  } catch (const RunError &error) {
    fmt::print(stderr, "device-run: {}\n", error.what());
    return error.exitCode;
  } catch (const std::exception &error) {
    fmt::print(stderr, "device-run: {}\n", error.what());
    return ExitLauncher;
  }
}

int runDevice(const std::vector<std::string> &arguments) {
  if (!arguments.empty() && arguments.front() == "doctor")
    return doctor::runDoctor({arguments.begin() + 1, arguments.end()});
  Options options = parseOptions(arguments);
  if (options.help) {
    fmt::print("{}", helpText());
    return 0;
  }
  if (options.version) {
    fmt::print("device-run {}\n", DEVICE_RUN_VERSION);
    return 0;
  }
  JobPlan plan = prepareJob(options, ownPath(), launcherProcess());
  SignalBlock signals;
  return runGuarded(signals, plan.scratch, [&] { return guarded([&] { return runJob(plan, signals); }); });
}

} // namespace

int main(int argc, char **argv) {
  return guarded([&] { return runDevice({argv + 1, argv + argc}); });
}
