#include "analyzer/driver/Run.h"

#include "analyzer/driver/CheckGlobs.h"
#include "analyzer/driver/CompileDatabase.h"
#include "analyzer/driver/Options.h"
#include "analyzer/driver/Output.h"
#include "analyzer/driver/Programs.h"
#include "analyzer/driver/Reporting.h"
#include "analyzer/driver/Statistics.h"
#include "analyzer/driver/Suggest.h"
#include "analyzer/driver/UnitSource.h"
#include "analyzer/facts/Binary.h"
#include "analyzer/facts/Text.h"
#include "analyzer/report/Site.h"
#include "analyzer/solve/Solve.h"
#include "checks/CheckRegistry.h"

#include "DeviceTidyConfig.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/raw_ostream.h"

#include <fmt/format.h>

#include <unordered_set>

namespace devicetidy::driver {
namespace {

/// Analyses what the options name and reports it.
class Analysis {
public:
  explicit Analysis(const Options &options) : options(options) {}

  ExitCode run() {
    if (!prepare()) {
      complain(error);
      return ExitCode::Usage;
    }
    ProjectFiles project(commands);
    leaveOutThirdParty(project);
    for (const std::string &notice : commands.notices)
      remark(options, notice);
    statistics.endPhase("compile database");

    UnitSource source(options, error);
    if (!error.empty()) {
      complain(error);
      return ExitCode::Usage;
    }
    UnitSet read = source.read(commands, project);
    std::vector<Unit> units = std::move(read.units);
    statistics.addUnits(units);
    statistics.addReading(read.counts);
    statistics.endPhase("parsing");
    noteUnits(units, read.asked, project);
    if (!options.emitFacts.empty())
      return emitFacts(units);

    solveAll(std::move(units));
    statistics.endPhase("solving");
    keepWanted();
    const ExitCode result = report(project);
    if (outcome.unitCount < read.total)
      remark(options,
             fmt::format("{} of {} translation units took part; --whole-program reads the others too",
                         outcome.unitCount, read.total));
    if (const std::string problem = source.finish(); !problem.empty())
      remark(options, "nothing is kept for the next run: " + problem);
    return result;
  }

private:
  bool prepare() {
    if (!selectChecks(options.checks, outcome.checks, error)) {
      error = "--checks: " + error;
      return false;
    }
    if (outcome.checks.empty()) {
      error = "--checks=" + options.checks + " selects no check";
      return false;
    }
    if (!selectChecks(options.warningsAsErrors, outcome.errors, error)) {
      error = "--warnings-as-errors: " + error;
      return false;
    }
    std::string wrong;
    if (!llvm::Regex(options.headerFilter).isValid(wrong)) {
      error = "--header-filter: '" + options.headerFilter + "' is no regular expression: " + wrong;
      return false;
    }
    if (!options.sourceRoot.empty() && !llvm::sys::fs::is_directory(options.sourceRoot)) {
      error = "--source-root: no such directory: " + options.sourceRoot;
      return false;
    }
    return collectCommands(options, commands, error);
  }

  /// Without FILES, vendored sources are not the user's business; when there is nothing else, they are.
  void leaveOutThirdParty(const ProjectFiles &project) {
    if (!options.files.empty())
      return;
    std::vector<CompileCommand> own;
    for (const CompileCommand &command : commands.commands)
      if (project.isOwnPlace(command.file))
        own.push_back(command);
    if (own.empty())
      return;
    statistics.addSkippedFiles(commands.commands.size() - own.size());
    commands.commands = std::move(own);
  }

  /// The first `asked` units are those whose failures matter; only files of named units have findings.
  void noteUnits(const std::vector<Unit> &units, std::size_t asked, const ProjectFiles &project) {
    std::unordered_set<Name> seen; // nearly all files are headers of LibTorch, read by every unit
    for (std::size_t i = 0; i < asked; ++i) {
      const Unit &unit = units[i];
      if (!unit.parseErrors.empty())
        outcome.failures.push_back({unit.mainFile.str(), unit.parseErrors.front(), unit.hasFatalError});
      else if (unit.hasFatalError)
        outcome.failures.push_back({unit.mainFile.str(), "no reason given", true});
      if (i < commands.commands.size())
        for (Name file : unit.files)
          if (seen.insert(file).second && project.isProject(file.str()))
            outcome.files.insert(file);
    }
    outcome.unitCount = units.size();
  }

  ExitCode emitFacts(const std::vector<Unit> &units) {
    std::string facts;
    if (options.emitFacts == "-")
      for (const Unit &unit : units)
        facts += writeText(unit);
    else
      facts = writeBinary(units);
    if (!writeOutput(options.emitFacts, facts))
      return ExitCode::Usage;
    llvm::errs() << describeFailures(outcome.failures, outcome.unitCount);
    return outcome.failures.empty() ? ExitCode::Clean : ExitCode::ParseFailed;
  }

  void solveAll(std::vector<Unit> units) {
    orderUnits(units);
    const LinkMap links = LinkMap::of(units);
    const Programs grouped = groupPrograms(units, links);
    statistics.addPrograms(grouped, links);
    const auto &programs = grouped.groups;
    std::vector<std::size_t> uses(units.size());
    for (const auto &program : programs)
      for (std::size_t unit : program)
        ++uses[unit];
    for (const auto &program : programs) {
      std::vector<Unit> parts;
      for (std::size_t unit : program) // moved where it is needed for the last time
        parts.push_back(--uses[unit] == 0 ? std::move(units[unit]) : units[unit]);
      const std::string name = parts.front().mainFile.str();
      if (!runGuarded([&] { solveProgram(std::move(parts)); }))
        outcome.failures.push_back(
            {name, name + ":1:1: the analyzer itself failed on the program of this file", true});
    }
  }

  void solveProgram(std::vector<Unit> parts) {
    const Program program = link(std::move(parts));
    const Solution solution =
        solve(program, {options.torchMajor, options.torchMinor, options.level == Level::Latent});
    statistics.addSolution(solution.stats);
    const std::size_t first = outcome.findings.size();
    for (const auto &check : makeChecks())
      if (outcome.checks.count(std::string(check->name())))
        check->run(solution, {program}, outcome.findings);
    locate(outcome.findings, first, program);
  }

  void keepWanted() {
    std::set<std::string> mainFiles;
    for (const CompileCommand &command : commands.commands)
      mainFiles.insert(command.file);
    const llvm::Regex headers(options.headerFilter);
    llvm::erase_if(outcome.findings, [&](const Finding &finding) {
      const std::string &file = finding.where.file.str();
      const bool isShown =
          mainFiles.count(file) || (outcome.files.count(finding.where.file) && headers.match(file));
      return finding.level > options.level || !isShown;
    });
    sortAndMerge(outcome.findings);
  }

  ExitCode report(const ProjectFiles &project) {
    const ReportResult result = writeReport(outcome, options, project);
    statistics.endPhase("reporting");
    if (!result.isWritten)
      return ExitCode::Usage;
    remark(options, result.summary);
    if (!result.suppressions.empty())
      remark(options, result.suppressions);
    if (options.stats)
      llvm::errs() << statistics.table();
    if (!outcome.failures.empty())
      return ExitCode::ParseFailed;
    return result.shown ? ExitCode::Findings : ExitCode::Clean;
  }

  const Options &options;
  CommandSet commands;
  Outcome outcome;
  Statistics statistics;
  std::string error;
};

ExitCode listChecks(const Options &options) {
  std::set<std::string> selected;
  std::string error;
  if (!selectChecks(options.checks, selected, error)) {
    complain("--checks: " + error);
    return ExitCode::Usage;
  }
  for (const CheckInfo &info : checkInfos())
    if (selected.count(std::string(info.name)))
      llvm::outs() << fmt::format("{:<28}{}\n", info.name, info.summary);
  return ExitCode::Clean;
}

ExitCode explain(const std::string &check) {
  if (const CheckInfo *info = findCheckInfo(check)) {
    llvm::outs() << llvm::StringRef(info->page);
    return ExitCode::Clean;
  }
  std::vector<std::string> names;
  for (const CheckInfo &info : checkInfos())
    names.emplace_back(info.name);
  complain("no check is called '" + check + "'" + suggestion(check, names));
  return ExitCode::Usage;
}

} // namespace

ExitCode runCommand(const std::vector<std::string> &arguments) {
  Options options;
  std::string error;
  if (!parseOptions(arguments, options, error)) {
    complain(error + "\ndevice-tidy --help lists the options");
    return ExitCode::Usage;
  }
  if (options.help) {
    llvm::outs() << helpText();
    return ExitCode::Clean;
  }
  if (options.version) {
    llvm::outs() << "device-tidy " DEVICE_TIDY_VERSION " (LLVM " DEVICE_TIDY_LLVM_VERSION ")\n";
    return ExitCode::Clean;
  }
  if (options.listChecks)
    return listChecks(options);
  if (!options.explain.empty())
    return explain(options.explain);
  return Analysis(options).run();
}

} // namespace devicetidy::driver
