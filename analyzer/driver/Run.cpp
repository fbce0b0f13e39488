#include "analyzer/driver/Run.h"

#include "analyzer/driver/CheckGlobs.h"
#include "analyzer/driver/CompileDatabase.h"
#include "analyzer/driver/Options.h"
#include "analyzer/driver/Output.h"
#include "analyzer/driver/Programs.h"
#include "analyzer/driver/ReadUnits.h"
#include "analyzer/driver/Statistics.h"
#include "analyzer/driver/Suggest.h"
#include "analyzer/facts/Binary.h"
#include "analyzer/facts/Text.h"
#include "analyzer/report/Describe.h"
#include "analyzer/report/TextReport.h"
#include "analyzer/solve/Solve.h"
#include "checks/CheckRegistry.h"

#include "DeviceTidyConfig.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/raw_ostream.h"

#include <fmt/format.h>

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

    std::vector<Unit> units = readUnits(commands.commands, project, {options.jobs, showsProgress(options)});
    statistics.addUnits(units);
    statistics.endPhase("parsing");
    noteFailures(units);
    if (!options.emitFacts.empty())
      return emitFacts(units);

    solveAll(std::move(units));
    statistics.endPhase("solving");
    keepWanted(project);
    return report();
  }

private:
  bool prepare() {
    if (!selectChecks(options.checks, enabled, error)) {
      error = "--checks: " + error;
      return false;
    }
    if (enabled.empty()) {
      error = "--checks=" + options.checks + " selects no check";
      return false;
    }
    if (!selectChecks(options.warningsAsErrors, errors, error)) {
      error = "--warnings-as-errors: " + error;
      return false;
    }
    std::string wrong;
    if (!llvm::Regex(options.headerFilter).isValid(wrong)) {
      error = "--header-filter: '" + options.headerFilter + "' is no regular expression: " + wrong;
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

  void noteFailures(const std::vector<Unit> &units) {
    for (const Unit &unit : units)
      if (!unit.parseErrors.empty())
        failures.push_back({unit.mainFile.str(), unit.parseErrors.front(), unit.hasFatalError});
      else if (unit.hasFatalError)
        failures.push_back({unit.mainFile.str(), "no reason given", true});
    unitCount = units.size();
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
    llvm::errs() << describeFailures(failures, unitCount);
    return failures.empty() ? ExitCode::Clean : ExitCode::ParseFailed;
  }

  void solveAll(std::vector<Unit> units) {
    const auto programs = groupPrograms(units);
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
        failures.push_back(
            {name, name + ":1:1: the analyzer itself failed on the program of this file", true});
    }
  }

  void solveProgram(std::vector<Unit> parts) {
    const Program program = link(std::move(parts));
    const Solution solution =
        solve(program, {options.torchMajor, options.torchMinor, options.level == Level::Latent});
    statistics.addSolution(solution.stats);
    for (const auto &check : makeChecks())
      if (enabled.count(std::string(check->name())))
        check->run(solution, {program}, findings);
  }

  void keepWanted(const ProjectFiles &project) {
    std::set<std::string> mainFiles;
    for (const CompileCommand &command : commands.commands)
      mainFiles.insert(command.file);
    const llvm::Regex headers(options.headerFilter);
    llvm::erase_if(findings, [&](const Finding &finding) {
      const std::string &file = finding.where.file.str();
      const bool isShown = mainFiles.count(file) || (project.isProject(file) && headers.match(file));
      return finding.level > options.level || !isShown;
    });
    sortAndMerge(findings);
  }

  ExitCode report() {
    std::vector<Diagnostic> diagnostics;
    SourceCache sources;
    for (const Finding &finding : findings) {
      diagnostics.push_back(describe(finding, *findCheckInfo(finding.check), sources));
      if (errors.count(finding.check))
        diagnostics.back().severity = Severity::Error;
    }
    std::string text;
    writeTextReport(diagnostics, sources, usesColour(options), text);
    const std::string failed = describeFailures(failures, unitCount);
    text += failed;
    if (!writeOutput(options.output.empty() ? "-" : options.output, text))
      return ExitCode::Usage;
    if (!options.output.empty())
      llvm::errs() << failed;
    statistics.endPhase("reporting");
    remark(options, describeResult(diagnostics, unitCount, failures.size()));
    if (options.stats)
      llvm::errs() << statistics.table();
    if (!failures.empty())
      return ExitCode::ParseFailed;
    return findings.empty() ? ExitCode::Clean : ExitCode::Findings;
  }

  const Options &options;
  CommandSet commands;
  std::set<std::string> enabled, errors;
  std::vector<Failure> failures;
  std::vector<Finding> findings;
  std::size_t unitCount = 0;
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
