#include "analyzer/driver/commands/SolvePrograms.h"

#include "analyzer/driver/programs/Programs.h"
#include "analyzer/driver/support/Parallel.h"
#include "analyzer/driver/support/Progress.h"
#include "analyzer/report/finding/Locate.h"
#include "analyzer/solve/Solve.h"
#include "checks/CheckRegistry.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/TimeProfiler.h"

namespace devicetidy::driver {
namespace {

using llvm::TimeTraceScope;

bool isStarted(const std::vector<Unit> &parts) {
  return llvm::any_of(parts, [](const Unit &part) {
    return llvm::any_of(part.functions, [](const auto &each) { return each.second.isMain; });
  });
}

// Facts that the programs before have cost: those that are started, and those that others call. Neither
// leaves less for the other: a package is not analysed less well for the examples beside it.
struct FactsRun {
  std::size_t started = 0, called = 0;
};

void solveProgram(std::vector<Unit> parts, const FileSettings &settings, Outcome &outcome,
                  Statistics &statistics, FactsRun &before) {
  const std::string name = parts.front().mainFile.str();
  const TimeTraceScope scope("program", name);
  const auto timed = [&name](const char *phase, auto work) {
    const TimeTraceScope each(phase, name);
    return work();
  };
  SolveOptions options = settings.solveOptions(parts);
  std::size_t &factsBefore = isStarted(parts) ? before.started : before.called;
  options.factsBefore = factsBefore;
  std::set<Name> imported;
  for (const Unit &part : parts)
    if ((part.joining == Joining::Imported || part.joining == Joining::Packaged) &&
        !outcome.askedFor.count(part.mainFile) && !outcome.contextFiles.count(part.mainFile))
      imported.insert(part.mainFile);
  options.imported = &imported;
  const Program program = timed("link", [&] { return link(std::move(parts)); });
  const Solution solution = timed("solve", [&] { return solve(program, options); });
  statistics.addSolution(solution.stats);
  factsBefore += solution.stats.factsRun;
  const auto optionOf = [&settings](std::string_view check, Name file, std::string_view option) {
    const config::Settings *found = settings.of(file);
    return found ? found->option(llvm::StringRef(check), llvm::StringRef(option)) : std::string();
  };
  const std::size_t first = outcome.findings.size();
  for (const auto &check : makeChecks())
    if (const std::string checkName(check->name()); outcome.checks.count(checkName)) {
      const TimeTraceScope each("check", checkName);
      check->run(solution, {program, optionOf}, outcome.findings);
    }
  timed("locate", [&] { locate(outcome.findings, first, program); });
}

} // namespace

void solvePrograms(std::vector<Unit> units, const FileSettings &settings, bool showProgress, Outcome &outcome,
                   Statistics &statistics) {
  orderUnits(units);
  const LinkMap links = LinkMap::of(units);
  const Programs grouped = groupPrograms(units, links);
  statistics.addPrograms(grouped, links);
  const auto &programs = grouped.groups;
  std::vector<std::size_t> uses(units.size());
  for (const auto &program : programs)
    for (std::size_t unit : program.units)
      ++uses[unit];
  FactsRun before;
  Progress progress(showProgress, "checking program", programs.size());
  inParallel(Task::Solve, 1, 1, [&](std::size_t) {
    for (const auto &program : programs) {
      std::vector<Unit> parts;
      for (std::size_t unit : program.units) { // moved where it is needed for the last time
        parts.push_back(--uses[unit] == 0 ? std::move(units[unit]) : units[unit]);
        adapt(parts.back(), unit, program);
      }
      const std::string name = parts.front().mainFile.str();
      progress.start(name);
      if (!runGuarded([&] { solveProgram(std::move(parts), settings, outcome, statistics, before); }))
        outcome.failures.push_back(
            {name, name + ":1:1: the analyzer itself failed on the program of this file", true});
      progress.finish();
    }
  });
}

} // namespace devicetidy::driver
