// What can be checked before anything is started.
#include "launch/Job.h"

#include "base/RunError.h"
#include "base/VirtualCuda.h"
#include "launch/Program.h"
#include "launch/Scratch.h"
#include "launch/VirtualGpus.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include <unistd.h>

namespace devicerun {
namespace {

namespace fs = std::filesystem;

int localRanksOf(const Options &options) {
  switch (options.rankCount) {
  case RankCount::Number:
    return options.ranks;
  case RankCount::Gpus:
    return *options.virtualGpus;
  case RankCount::Auto:
    if (options.virtualGpus.value_or(0) > 0)
      return *options.virtualGpus;
    [[fallthrough]];
  case RankCount::Cpus:
    return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  case RankCount::Default:
    break;
  }
  return 1;
}

// Libraries take a program with the variables of a rank for a part of a distributed job, however small.
bool isAlone(const Options &options, const JobPlan &plan) {
  const bool ranksWanted = options.rankCount != RankCount::Default || options.nodesGiven ||
                           options.masterPort || !options.masterAddress.empty() || !options.runId.empty() ||
                           options.maxRestarts > 0;
  return !ranksWanted && !plan.outer && plan.environment.count("SLURM_PROCID") == 0;
}

// Found out now and not after hours of training.
void checkWritable(const std::string &option, const std::string &file) {
  if (file.empty())
    return;
  std::error_code error;
  fs::path folder = fs::absolute(file).parent_path();
  if (fs::is_directory(file, error))
    throw RunError(ExitUsage, fmt::format("{} {}: it is a directory; name a file in it", option, file));
  if (!fs::is_directory(folder, error))
    throw RunError(ExitUsage, fmt::format("{} {}: there is no directory {}; make it first", option, file,
                                          folder.string()));
  if (access(folder.c_str(), W_OK) != 0)
    throw RunError(ExitUsage, fmt::format("{} {}: cannot write in {}: {}; name another file", option, file,
                                          folder.string(), std::strerror(errno)));
}

// Each rank of an outer launcher has a launcher of its own; they must not write the same file.
void separateRanks(Options &options, const RankIdentity &who) {
  if (who.worldSize == 1)
    return;
  for (std::string *file : {&options.traceFile, &options.findingsOut}) {
    if (file->empty())
      continue;
    fs::path path(*file);
    *file = (path.parent_path() /
             fmt::format("{}.rank{}{}", path.stem().string(), who.rank, path.extension().string()))
                .string();
  }
  if (!options.findingsFile.empty() && options.findingsOut.empty())
    throw RunError(ExitUsage,
                   "--findings under an outer launcher needs --findings-out FILE: every rank writes "
                   "a report of its own, FILE with .rankN before its extension");
}

} // namespace

JobPlan prepareJob(const Options &options, const std::string &executable, int launcherPid) {
  JobPlan plan;
  plan.options = options;
  plan.environment = currentEnvironment();
  auto path = plan.environment.find("PATH");
  plan.program =
      findProgram(options.command.front(), path == plan.environment.end() ? "/usr/bin:/bin" : path->second);
  if (options.rankCount == RankCount::Default && !options.nodesGiven) {
    plan.outer = findOuterRank(plan.environment, launcherPid);
    plan.note = taskWithoutStep(plan.environment);
  }
  plan.localRanks = localRanksOf(options);
  plan.alone = isAlone(options, plan);
  if (plan.outer)
    separateRanks(plan.options, plan.outer->who);
  checkWritable("--trace", plan.options.traceFile);
  checkWritable("--findings-out", plan.options.findingsOut);
  if (!options.findingsFile.empty())
    plan.findings = std::make_shared<FindingsReport>(options.findingsFile);
  if (options.virtualGpus || options.explain) {
    const std::string library = findVirtualCuda(plan.environment, executable);
    if (options.virtualGpus)
      checkNotRealCuda(plan.program);
    plan.preload = preloadList(library, sanitizerOf(plan.program), plan.environment["LD_PRELOAD"]);
    plan.scratch = makeScratch(plan.environment);
  }
  return plan;
}

} // namespace devicerun
