#include "analyzer/driver/SolvePrograms.h"

#include "analyzer/driver/Parallel.h"
#include "analyzer/driver/Programs.h"
#include "analyzer/report/Site.h"
#include "analyzer/solve/Solve.h"
#include "checks/CheckRegistry.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/TimeProfiler.h"

namespace devicetidy::driver {
namespace {

using llvm::TimeTraceScope;

void solveProgram(std::vector<Unit> parts, const Options &options, Outcome &outcome, Statistics &statistics) {
  const std::string name = parts.front().mainFile.str();
  const TimeTraceScope scope("program", name);
  const auto timed = [&name](const char *phase, auto work) {
    const TimeTraceScope each(phase, name);
    return work();
  };
  const bool isIncomplete =
      llvm::any_of(parts, [](const Unit &unit) { return !unit.skippedFunctions.empty(); });
  const Program program = timed("link", [&] { return link(std::move(parts)); });
  const Solution solution = timed("solve", [&] {
    return solve(program,
                 {options.torchMajor, options.torchMinor, options.level == Level::Latent, isIncomplete});
  });
  statistics.addSolution(solution.stats);
  const std::size_t first = outcome.findings.size();
  for (const auto &check : makeChecks())
    if (const std::string checkName(check->name()); outcome.checks.count(checkName)) {
      const TimeTraceScope each("check", checkName);
      check->run(solution, {program}, outcome.findings);
    }
  timed("locate", [&] { locate(outcome.findings, first, program); });
}

} // namespace

void solvePrograms(std::vector<Unit> units, const Options &options, Outcome &outcome,
                   Statistics &statistics) {
  orderUnits(units);
  const LinkMap links = LinkMap::of(units);
  const Programs grouped = groupPrograms(units, links);
  statistics.addPrograms(grouped, links);
  const auto &programs = grouped.groups;
  std::vector<std::size_t> uses(units.size());
  for (const auto &program : programs)
    for (std::size_t unit : program)
      ++uses[unit];
  inParallel(Task::Solve, 1, 1, [&](std::size_t) {
    for (const auto &program : programs) {
      std::vector<Unit> parts;
      for (std::size_t unit : program) // moved where it is needed for the last time
        parts.push_back(--uses[unit] == 0 ? std::move(units[unit]) : units[unit]);
      const std::string name = parts.front().mainFile.str();
      if (!runGuarded([&] { solveProgram(std::move(parts), options, outcome, statistics); }))
        outcome.failures.push_back(
            {name, name + ":1:1: the analyzer itself failed on the program of this file", true});
    }
  });
}

} // namespace devicetidy::driver
