#include "analyzer/driver/commands/Run.h"

#include "analyzer/driver/commands/ConfigCommands.h"
#include "analyzer/driver/commands/EmitFacts.h"
#include "analyzer/driver/commands/GraphCommand.h"
#include "analyzer/driver/commands/Reporting.h"
#include "analyzer/driver/commands/SolvePrograms.h"
#include "analyzer/driver/commands/Statistics.h"
#include "analyzer/driver/gate/Gate.h"
#include "analyzer/driver/input/CompileDatabase.h"
#include "analyzer/driver/input/Sharding.h"
#include "analyzer/driver/options/FileSettings.h"
#include "analyzer/driver/options/Options.h"
#include "analyzer/driver/programs/LinkInputs.h"
#include "analyzer/driver/programs/PythonUnits.h"
#include "analyzer/driver/programs/UnitSource.h"
#include "analyzer/driver/support/Output.h"
#include "analyzer/driver/support/Profile.h"
#include "analyzer/facts/Language.h"

#include "DeviceTidyConfig.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/TimeProfiler.h"
#include "llvm/Support/raw_ostream.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_set>

namespace devicetidy::driver {
namespace {

/// Analyses what the options name and reports it.
class Analysis {
public:
  explicit Analysis(const Options &options)
      : options(options), configuration(options.config), settings(configuration), gate(options) {}

  ExitCode run() {
    std::string error;
    Profile profile(options.profile, error);
    if (!error.empty() || !checkOptions(error)) {
      complain(error);
      return ExitCode::Usage;
    }
    const ExitCode code = options.link           ? linkFacts()
                          : namesPython(options) ? analysePython()
                                                 : analyseSources();
    if (const std::string problem = profile.write(); !problem.empty()) {
      complain("--profile: " + problem);
      return ExitCode::Usage;
    }
    return code;
  }

  const ReportResult &reported() const { return result; }

private:
  bool checkOptions(std::string &error) {
    if (!configuration.open(error) || !gate.open(error))
      return false;
    if (!options.sourceRoot.empty() && !llvm::sys::fs::is_directory(options.sourceRoot)) {
      error = "--source-root: no such directory: " + options.sourceRoot;
      return false;
    }
    for (const std::string &root : options.projectRoots)
      if (!llvm::sys::fs::is_directory(root)) {
        error = "--project-root: no such directory: " + root;
        return false;
      }
    return true;
  }

  ExitCode analyseSources() {
    CommandSet commands;
    std::string error = options.clearCache ? clearCache(options) : std::string();
    if (error.empty() && options.clearCache && options.files.empty() && options.buildPath.empty()) {
      remark(options.quiet, "the cache is cleared");
      return ExitCode::Clean;
    }
    if (!error.empty() || !collectCommands(sourceRequest(options), configuration, commands, error)) {
      complain(error);
      return ExitCode::Usage;
    }
    const ProjectFiles project(commands, options.projectRoots);
    leaveOutThirdParty(commands, project);
    const ShardMark shard = keepShard(commands.commands, options.shard);
    for (const std::string &notice : commands.notices)
      remark(options.quiet, notice);
    statistics.endPhase("compile database");

    UnitSource source(options);
    for (const CompileCommand &command : commands.commands)
      if (command.isGuess)
        guessed.insert(Name(command.file));
    UnitSet read = source.read(commands, project);
    statistics.addReading(read.counts);
    noteUnits(read.units, read.asked, commands, project);
    const std::size_t taken = read.units.size();
    if (!options.emitFacts.empty()) {
      const ExitCode result = emitFacts(std::move(read.units), outcome.failures, shard, options, project);
      keepForNextRun(source);
      return result;
    }
    for (const CompileCommand &command : commands.commands)
      if (!command.standsIn)
        mainFiles.insert(Name(command.file));
    mainFiles.insert(commands.headers.begin(), commands.headers.end());
    std::vector<std::string> roots = project.projectRoots();
    if (hasPython(options) && !addPython(read.units, roots))
      return ExitCode::Usage;
    if (!options.files.empty())
      outcome.askedFor = mainFiles;
    const ExitCode result =
        analyse(std::move(read.units),
                {[&](const std::string &file) { return project.isProject(file) || isPython(file); },
                 std::move(roots)});
    if (taken < read.total)
      remark(options.quiet,
             fmt::format("{} of {} translation units took part; --whole-program reads the others too", taken,
                         read.total));
    keepForNextRun(source);
    return result;
  }

  ExitCode analysePython() {
    std::vector<Unit> units;
    std::vector<std::string> roots;
    if (!options.emitFacts.empty()) {
      complain("--emit-facts does not write facts of Python files yet");
      return ExitCode::Usage;
    }
    if (const std::string error = options.clearCache ? clearCache(options) : std::string(); !error.empty()) {
      complain(error);
      return ExitCode::Usage;
    }
    if (!addPython(units, roots))
      return ExitCode::Usage;
    outcome.askedFor = mainFiles;
    statistics.endPhase("parsing");
    return analyse(std::move(units), {[this](const std::string &file) {
                                        return outcome.files.count(file) || outcome.contextFiles.count(file);
                                      },
                                      std::move(roots)});
  }

  /// Adds the units of the Python files that were named and of what they import. False when that failed.
  bool addPython(std::vector<Unit> &units, std::vector<std::string> &roots) {
    PythonUnits read;
    std::string error;
    if (!readPython(options, read, error)) {
      complain(error);
      return false;
    }
    for (std::size_t i = 0; i < read.units.size(); ++i) {
      const Unit &unit = read.units[i];
      (i < read.own ? outcome.files : outcome.contextFiles).insert(unit.files.begin(), unit.files.end());
      if (i < read.asked)
        mainFiles.insert(unit.mainFile);
      if (i < read.own)
        noteFailure(unit);
    }
    sortFailures();
    outcome.unitCount += read.files;
    statistics.addUnits(read.units);
    std::move(read.units.begin(), read.units.end(), std::back_inserter(units));
    roots.insert(roots.end(), read.roots.begin(), read.roots.end());
    statistics.addReading(read.counts);
    if (!read.remark.empty())
      remark(options.quiet, "the cache cannot be written: " + read.remark);
    return true;
  }

  ExitCode linkFacts() {
    LinkInputs inputs;
    std::string error;
    if (!readLinkInputs(options.files, options.jobs ? options.jobs : defaultJobs(), inputs, error)) {
      complain(error);
      return ExitCode::Usage;
    }
    for (const std::string &each : inputs.remarks)
      remark(options.quiet, each);
    for (const Unit &unit : inputs.units) {
      mainFiles.insert(unit.mainFile);
      outcome.files.insert(unit.files.begin(), unit.files.end());
    }
    outcome.changedFiles = std::move(inputs.changedFiles);
    noteFailures(inputs.units, inputs.units.size());
    return analyse(std::move(inputs.units),
                   {[this](const std::string &file) { return outcome.files.count(file) != 0; },
                    std::move(inputs.roots)});
  }

  /// Without FILES, vendored sources are not the user's business; when there is nothing else, they are.
  void leaveOutThirdParty(CommandSet &commands, const ProjectFiles &project) {
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

  /// The first `asked` units are those whose failures matter; only files of those that are named have
  /// findings.
  void noteUnits(const std::vector<Unit> &units, std::size_t asked, const CommandSet &commands,
                 const ProjectFiles &project) {
    std::unordered_set<Name> seen,
        seenByStandIn; // nearly all files are headers of LibTorch, read by every unit
    for (std::size_t i = 0; i < units.size(); ++i) {
      const bool standsIn = i >= std::min(asked, commands.commands.size()) || commands.commands[i].standsIn;
      for (Name file : units[i].files)
        if ((standsIn ? seenByStandIn : seen).insert(file).second && project.isProject(file.str()))
          (standsIn ? outcome.contextFiles : outcome.files).insert(file);
    }
    outcome.files.insert(commands.headers.begin(), commands.headers.end());
    noteFailures(units, asked);
  }

  void noteFailure(const Unit &unit) {
    if (unit.parseErrors.empty() && !unit.hasFatalError)
      return;
    const std::string reason = unit.parseErrors.empty() ? "no reason given" : unit.parseErrors.front();
    outcome.brokenFiles.insert(unit.files.begin(), unit.files.end());
    outcome.brokenFiles.insert(unit.mainFile);
    // How it is compiled is only a guess, so a parse error is not an error in the code.
    if (guessed.count(unit.mainFile))
      remark(options.quiet,
             fmt::format("{} is not in the compile database, and with the compiler arguments of "
                         "another file it could not be parsed: {}",
                         unit.mainFile.str(), printable(reason)));
    else if (unit.isCuda) // read with replacements for CUDA's headers
      remark(options.quiet,
             fmt::format("{} is analysed only in part, because CUDA's headers are not read: {}",
                         unit.mainFile.str(), printable(reason)));
    else
      outcome.failures.push_back({unit.mainFile.str(), reason, unit.hasFatalError});
  }

  void sortFailures() {
    llvm::stable_sort(outcome.failures, [](const Failure &a, const Failure &b) {
      return std::tie(a.file, a.reason) < std::tie(b.file, b.reason);
    });
  }

  void noteFailures(const std::vector<Unit> &units, std::size_t asked) {
    for (std::size_t i = 0; i < asked; ++i)
      noteFailure(units[i]);
    sortFailures();
    outcome.unitCount = units.size();
    statistics.addUnits(units);
    statistics.endPhase(options.link ? "loading facts" : "parsing");
  }

  /// Draws one function instead of reporting.
  ExitCode draw(std::vector<Unit> units, const ProjectView &project) {
    bool isWritten = true;
    const bool namesSources = !options.files.empty() && !options.link;
    const std::set<Name> asked = namesSources ? mainFiles : std::set<Name>();
    if (const std::string problem =
            drawGraph(std::move(units), asked, settings, options, sourceRootOf(options, project), isWritten);
        !problem.empty()) {
      complain(problem);
      return ExitCode::Usage;
    }
    llvm::errs() << describeFailures(outcome.failures, outcome.unitCount);
    if (!isWritten)
      return ExitCode::Usage;
    return outcome.failures.empty() ? ExitCode::Clean : ExitCode::ParseFailed;
  }

  ExitCode analyse(std::vector<Unit> units, const ProjectView &project) {
    const std::set<Name> files = filesWithFindings();
    if (std::string error;
        !gate.findChanges(sourceRootOf(options, project), files, error) || !configure(files, error)) {
      complain(error);
      return ExitCode::Usage;
    }
    if (!options.graph.empty())
      return draw(std::move(units), project);
    solvePrograms(std::move(units), settings, showsProgress(options.quiet), outcome, statistics);
    statistics.endPhase("solving");
    keepWanted();
    const llvm::TimeTraceScope scope("report");
    return report(project);
  }

  /// The files that findings may be in.
  std::set<Name> filesWithFindings() const {
    std::set<Name> files = outcome.files;
    files.insert(outcome.contextFiles.begin(), outcome.contextFiles.end());
    files.insert(mainFiles.begin(), mainFiles.end());
    return files;
  }

  /// Reads the configuration of `files`.
  bool configure(const std::set<Name> &files, std::string &error) {
    if (!settings.read(files, error))
      return false;
    if (options.reportUnusedSuppressions)
      settings.findAll();
    outcome.checks = settings.checks();
    outcome.isEnabled = [this](Name file, const std::string &check) {
      const config::Settings *found = settings.of(file);
      return found && found->isEnabled(check);
    };
    outcome.isShown = [this](Name file, const std::string &check, Level level) {
      const config::Settings *found = settings.of(file);
      return found && found->isEnabled(check) && level <= found->levelOf(check) &&
             (mainFiles.count(file) || settings.showsHeader(file));
    };
    outcome.isError = [this](const Finding &finding) { return settings.isError(finding); };
    return true;
  }

  void keepWanted() {
    if (options.reportUnusedSuppressions)
      for (const Finding &finding : outcome.findings)
        outcome.places.push_back({finding.check, finding.cause.valid() ? finding.cause : finding.where});
    llvm::erase_if(outcome.findings, [&](const Finding &finding) {
      const Name file = finding.where.file;
      const bool isShown = mainFiles.count(file) ||
                           (outcome.files.count(file) && settings.showsHeader(file)) ||
                           touches(finding, outcome.askedFor);
      return !isShown || !settings.isWanted(finding);
    });
    sortAndMerge(outcome.findings);
  }

  ExitCode report(const ProjectView &project) {
    result = writeReport(outcome, options, project, gate);
    statistics.endPhase("reporting");
    if (!result.isWritten)
      return ExitCode::Usage;
    for (const std::string &line : result.summary)
      remark(options.quiet, line);
    if (outcome.checks.empty())
      remark(options.quiet,
             "no check is enabled for these files; --explain-config FILE says where the setting comes from");
    if (const std::size_t hits = statistics.omissions())
      remark(options.quiet,
             fmt::format("some calls were not followed (bounds were hit {} time{}): see --stats", hits,
                         hits == 1 ? "" : "s"));
    if (options.stats)
      llvm::errs() << statistics.table();
    if (!outcome.failures.empty())
      return ExitCode::ParseFailed;
    return result.shown ? ExitCode::Findings : ExitCode::Clean;
  }

  void keepForNextRun(UnitSource &source) {
    if (const std::string problem = source.finish(); !problem.empty())
      remark(options.quiet, "the cache cannot be written: " + problem);
  }

  const Options &options;
  config::Configuration configuration;
  FileSettings settings;
  Gate gate;
  Outcome outcome;
  ReportResult result;
  Statistics statistics;
  std::set<Name> guessed;   ///< parsed with the compiler arguments of another file
  std::set<Name> mainFiles; ///< findings in them are shown for any header filter
};

/// Applies fixes until no more can be: one may overlap another, or uncover a finding. Then says what is left.
ExitCode analyseAndFix(const Options &options) {
  constexpr unsigned mostRounds = 8;
  Analysis first(options);
  const ExitCode code = first.run();
  ReportResult last = first.reported();
  if (!last.fixed || options.link) // facts are of the code before
    return code;
  Options again = options;
  again.isFurtherRound = again.quiet = true;
  again.stats = again.clearCache = false;
  again.profile = again.writeBaseline = again.exportFixes = {};
  std::size_t fixed = 0;
  for (unsigned round = 1; last.fixed && round < mostRounds; ++round) {
    Analysis next(again);
    const ExitCode result = next.run();
    last = next.reported();
    fixed += last.fixed;
    if (result == ExitCode::Usage || (result == ExitCode::ParseFailed && code != ExitCode::ParseFailed)) {
      complain("the code cannot be analysed again after the fixes: run device-tidy without --fix to see why");
      return result;
    }
  }
  if (fixed)
    remark(options.quiet, fmt::format("analysed again and fixed {} more", fixed));
  if (last.fixed) {
    remark(options.quiet, fmt::format("stopped after {} rounds: run device-tidy again", mostRounds));
    return code;
  }
  for (const std::string &line : last.left)
    remark(options.quiet, line);
  if (last.left.empty())
    remark(options.quiet, "analysed again: no finding is left");
  return code;
}

ExitCode dispatch(const std::vector<std::string> &arguments, Server serve) {
  Options options;
  std::string error;
  if (!parseOptions(arguments, options, error)) {
    complain(error + "\ndevice-tidy --help lists the options");
    return ExitCode::Usage;
  }
  if (options.help || options.helpAll) {
    llvm::outs() << helpText(options.helpAll);
    return ExitCode::Clean;
  }
  if (options.version) {
    llvm::outs() << "device-tidy " DEVICE_TIDY_VERSION " (LLVM " DEVICE_TIDY_LLVM_VERSION ")\n";
    return ExitCode::Clean;
  }
  if (const std::optional<ExitCode> told = runInformation(options))
    return *told;
  if (options.lsp && !serve) {
    complain("--lsp needs the language server library of LLVM 22, and this device-tidy is built with "
             "LLVM " DEVICE_TIDY_LLVM_VERSION);
    return ExitCode::Usage;
  }
  return options.lsp ? serve(options) : analyseAndFix(options);
}

} // namespace

ExitCode runCommand(const std::vector<std::string> &arguments, Server serve) {
  const ExitCode code = dispatch(arguments, serve);
  return flushOutput() ? code : ExitCode::Usage;
}

} // namespace devicetidy::driver
