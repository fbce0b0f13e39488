//===- Job.h - one run of device-run ----------------------------*- C++ -*-===//
//
// Prepares a job, starts its ranks, and prints the summary when they have ended.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "base/Environment.h"
#include "base/Signals.h"
#include "launch/Options.h"
#include "launch/OuterLauncher.h"
#include "records/Findings.h"

#include <memory>
#include <optional>
#include <string>

namespace devicerun {

/// Everything that can be wrong before anything is started has been checked.
struct JobPlan {
  Options options;
  Environment environment;
  std::string program;            ///< found in PATH
  std::string preload;            ///< LD_PRELOAD with the library, with --virtual-gpus
  std::optional<OuterRank> outer; ///< when an outer launcher gave the rank
  std::string note;               ///< what the user should know about the ranks that are started, or empty
  int localRanks = 1;
  bool alone = false;  ///< nothing asks for ranks: the program is started as a shell would start it
  std::string scratch; ///< a directory of this job, with --virtual-gpus
  std::shared_ptr<FindingsReport> findings;
};

/// Checks the options against the system. `executable` is device-run itself, `launcherPid` the process that
/// started it. Throws RunError.
JobPlan prepareJob(const Options &options, const std::string &executable, int launcherPid);

/// Runs the attempts, prints the summary and writes the reports. Returns the exit code.
int runJob(JobPlan &plan, const SignalBlock &signals);

} // namespace devicerun
