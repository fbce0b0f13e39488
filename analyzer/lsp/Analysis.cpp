#include "analyzer/lsp/Analysis.h"

#include "analyzer/driver/programs/Programs.h"
#include "analyzer/driver/support/Parallel.h"
#include "analyzer/report/finding/Locate.h"
#include "analyzer/solve/Solve.h"
#include "checks/CheckRegistry.h"

#include "llvm/ADT/STLExtras.h"

namespace devicetidy::lsp {

namespace {

void analyseProgram(std::vector<Unit> parts, const SolveOptions &solving,
                    const driver::FileSettings &settings, Analysis &result) {
  const Program program = link(std::move(parts));
  Solution solution = solve(program, solving);
  if (*solving.stop)
    return;
  const auto optionOf = [&settings](std::string_view check, Name file, std::string_view option) {
    const config::Settings *found = settings.of(file);
    return found ? found->option(llvm::StringRef(check), llvm::StringRef(option)) : std::string();
  };
  const std::size_t first = result.findings.size();
  for (const auto &check : makeChecks())
    if (settings.checks().count(std::string(check->name())))
      check->run(solution, {program, optionOf}, result.findings);
  locate(result.findings, first, program);
  std::move(solution.placed.begin(), solution.placed.end(), std::back_inserter(result.placed));
}

} // namespace

Analysis analyse(const ProjectUnits &units, const driver::FileSettings &settings, const std::set<Name> &files,
                 const std::atomic<bool> &stop) {
  Analysis result;
  const std::vector<std::size_t> roots = units.roots();
  const auto isOpen = [&](std::size_t unit) { return llvm::is_contained(roots, unit); };
  // In a thread of its own: what the solver interns lives as long as its thread.
  driver::inParallel(driver::Task::Solve, 1, 1, [&](std::size_t) {
    for (const driver::Group &group : driver::groupPrograms(units.all(), units.links()).groups) {
      if (stop || llvm::none_of(group.units, isOpen))
        continue;
      driver::runGuarded([&] {
        std::vector<Unit> parts;
        for (std::size_t unit : group.units) {
          parts.push_back(units.all()[unit]);
          adapt(parts.back(), unit, group);
        }
        SolveOptions solving = settings.solveOptions(parts);
        solving.placedIn = &files;
        solving.stop = &stop;
        analyseProgram(std::move(parts), solving, settings, result);
      });
    }
  });
  result.isStopped = stop;
  sortAndMerge(result.findings);
  return result;
}

} // namespace devicetidy::lsp
