#include "analyzer/plugin/AstAnalysis.h"

#include "analyzer/config/DistributedOptions.h"
#include "analyzer/driver/input/ProjectFiles.h"
#include "analyzer/driver/support/Parallel.h"
#include "analyzer/frontend/LowerAst.h"
#include "analyzer/report/diagnostic/Describe.h"
#include "analyzer/report/finding/Locate.h"
#include "analyzer/report/fix/FixPlanner.h"
#include "analyzer/solve/Solve.h"
#include "checks/CheckRegistry.h"

#include "llvm/ADT/STLExtras.h"

#include <mutex>

namespace devicetidy::plugin {
namespace {

using driver::ProjectFiles;

ProjectFiles projectOf(const clang::ASTContext &context, const Settings &settings) {
  const clang::SourceManager &sources = context.getSourceManager();
  driver::CommandSet commands;
  commands.databaseDirectory = settings.buildDirectory;
  if (const auto file = sources.getFileEntryRefForID(sources.getMainFileID()))
    commands.commands.push_back(
        {settings.buildDirectory, frontend::absolutePath(sources.getFileManager(), file->getName()), {}, {}});
  return ProjectFiles(commands);
}

std::vector<Finding> findingsOf(Unit unit, const Settings &settings) {
  std::vector<Unit> units;
  units.push_back(std::move(unit));
  const Program program = link(std::move(units));
  const auto optionOf = [&settings](std::string_view check, Name, std::string_view option) {
    const auto found = settings.checkOptions.find(std::string(check) + "." + std::string(option));
    return found == settings.checkOptions.end() ? std::string() : found->second;
  };
  SolveOptions options;
  options.torchMajor = settings.torchVersion.major;
  options.torchMinor = settings.torchVersion.minor;
  options.reportLatent = settings.reportLatent;
  options.names = config::distributedNames(
      [&](const char *option) { return optionOf("device-map-distributed", Name(), option); });
  const Solution solution = solve(program, options);
  std::vector<Finding> findings;
  for (const auto &check : makeChecks())
    check->run(solution, {program, optionOf}, findings);
  locate(findings, 0, program);
  sortAndMerge(findings);
  return findings;
}

std::vector<Diagnostic> analyse(clang::ASTContext &context, clang::Preprocessor &preprocessor,
                                const Settings &settings) {
  const ProjectFiles project = projectOf(context, settings);
  const auto isProject = [&project](const std::string &file) { return project.isProject(file); };
  Unit unit = frontend::lowerAst(context, preprocessor, {isProject});
  const std::vector<Name> files = unit.files;
  std::vector<Diagnostic> diagnostics;
  SourceCache sources;
  std::set<std::string, std::less<>> macros;
  for (Name file : files)
    if (isProject(file.str()))
      collectMacros(sources.text(file), macros);
  FixPlanner planner(sources, isProject, std::move(macros));
  for (const Finding &finding : findingsOf(std::move(unit), settings)) {
    if (!isProject(finding.where.file.str()))
      continue;
    Diagnostic diagnostic = describe(finding, *findCheckInfo(finding.check), sources);
    diagnostic.fix = planner.plan(finding);
    diagnostics.push_back(std::move(diagnostic));
  }
  return diagnostics;
}

struct Kept {
  const clang::ASTContext *context;
  Settings settings;
  std::weak_ptr<const AstAnalysis> analysis;
};

} // namespace

std::shared_ptr<const AstAnalysis>
AstAnalysis::of(clang::ASTContext &context, clang::Preprocessor &preprocessor, const Settings &settings) {
  static std::mutex mutex;
  static std::vector<Kept> kept;
  const std::lock_guard<std::mutex> lock(mutex);
  llvm::erase_if(kept, [](const Kept &each) { return each.analysis.expired(); });
  for (const Kept &each : kept)
    if (each.context == &context && each.settings == settings)
      return each.analysis.lock();
  const auto analysis = std::make_shared<AstAnalysis>();
  // Deeply nested code needs a deeper stack than clang-tidy has.
  driver::inParallel(driver::Task::Solve, 1, 1, [&](std::size_t) {
    analysis->crashed =
        !driver::runGuarded([&] { analysis->diagnostics = analyse(context, preprocessor, settings); });
  });
  kept.push_back({&context, settings, analysis});
  return analysis;
}

} // namespace devicetidy::plugin
