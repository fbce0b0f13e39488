#include "analyzer/driver/commands/Reporting.h"

#include "analyzer/driver/commands/ApplyFixes.h"
#include "analyzer/driver/commands/Documentation.h"
#include "analyzer/driver/commands/Run.h"
#include "analyzer/driver/support/Output.h"
#include "analyzer/driver/support/Paths.h"
#include "analyzer/facts/Language.h"
#include "analyzer/report/diagnostic/Describe.h"
#include "analyzer/report/diagnostic/Fingerprint.h"
#include "analyzer/report/diagnostic/NoLint.h"
#include "analyzer/report/diagnostic/SelectFixes.h"
#include "analyzer/report/diagnostic/ShownPlace.h"
#include "analyzer/report/fix/FixPlanner.h"
#include "analyzer/report/formats/ReportRun.h"
#include "analyzer/report/formats/TextReport.h"
#include "analyzer/report/source/Text.h"
#include "checks/CheckRegistry.h"

#include "DeviceTidyConfig.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace devicetidy::driver {

using llvm::StringRef;

std::string sourceRootOf(const Options &options, const ProjectView &project) {
  if (!options.sourceRoot.empty())
    return StringRef(absolutePath(options.sourceRoot)).rtrim('/').str();
  const std::vector<std::string> &roots = project.roots;
  const std::string start = roots.empty() ? absolutePath(".") : roots.front();
  for (StringRef directory = start; !directory.empty(); directory = llvm::sys::path::parent_path(directory))
    if (llvm::sys::fs::exists(directory + "/.git"))
      return directory.str();
  return start;
}

namespace {

/// "file:line:column: message", as the frontend writes it.
UnitFailure unitFailure(const Failure &failure) {
  UnitFailure result;
  result.isTotal = failure.isTotal;
  result.where.file = failure.file;
  result.text = failure.reason;
  const auto [before, message] = StringRef(failure.reason).split(": ");
  const auto [place, column] = before.rsplit(':');
  const auto [file, line] = place.rsplit(':');
  Location where;
  if (message.empty() || line.getAsInteger(10, where.line) || column.getAsInteger(10, where.column))
    return result;
  where.file = Name(std::string_view(file.data(), file.size()));
  where.endLine = where.line;
  where.endColumn = where.column;
  result.where = where;
  result.text = message.str();
  return result;
}

class Reporter {
public:
  Reporter(const Outcome &outcome, const Options &options, const ProjectView &project, Gate &gate)
      : outcome(outcome), options(options), project(project), gate(gate) {}

  ReportResult run() {
    for (Name file : outcome.changedFiles)
      sources.withhold(file);
    describeAll();
    context.suppressed = applyNoLint(diagnostics, sources);
    context.version = DEVICE_TIDY_VERSION;
    context.sourceRoot = sourceRootOf(options, project);
    context.documentation = documentation();
    for (const Failure &failure : outcome.failures)
      context.failures.push_back(unitFailure(failure));
    llvm::sort(context.failures, [](const UnitFailure &a, const UnitFailure &b) {
      return a.where != b.where ? a.where < b.where : a.text < b.text;
    });
    for (const CheckInfo &info : checkInfos())
      if (outcome.checks.count(std::string(info.name)))
        context.checks.push_back(&info);
    addUnusedSuppressions();
    addFingerprints(diagnostics, context.sourceRoot, sources);
    ReportResult result;
    result.isWritten = gate.apply(diagnostics, context, sources,
                                  [this](const BaselineEntry &entry) { return looksAt(entry); });
    for (Diagnostic &each : diagnostics)
      if (!outcome.askedFor.empty() && !outcome.files.count(each.where.file))
        showWhereItEnters(each,
                          [this](const Location &where) { return outcome.askedFor.count(where.file) != 0; });
    result.shown = static_cast<std::size_t>(
        llvm::count_if(diagnostics, [](const Diagnostic &each) { return each.isActive(); }));
    const ExitCode exitCode = !outcome.failures.empty() ? ExitCode::ParseFailed
                              : result.shown            ? ExitCode::Findings
                                                        : ExitCode::Clean;
    context.exitCode = static_cast<int>(exitCode);
    result.isWritten &= options.isFurtherRound || writeFindings();
    std::vector<Diagnostic> active = diagnostics;
    llvm::erase_if(active, [](const Diagnostic &each) { return !each.isActive(); });
    result.isWritten &= handleFixes(active, result.fixed);
    for (const Diagnostic &each : active)
      result.left.push_back(lineOf(each));
    result.summary = {describeResult(active, outcome.unitCount, outcome.failures.size())};
    llvm::append_range(result.summary, gate.remarks());
    if (context.suppressed)
      result.summary.push_back(fmt::format("Suppressed {} finding{} (NOLINT)", context.suppressed,
                                           context.suppressed == 1 ? "" : "s"));
    return result;
  }

private:
  bool wantsFixes() const {
    return outcome.changedFiles.empty() &&
           (options.fix || options.fixErrors || !options.exportFixes.empty() || options.format == "sarif" ||
            options.format == "json" || options.format == "html");
  }

  /// What a broken unit would say is not known, neither of its own file nor of its headers.
  bool looksAt(const BaselineEntry &entry) const {
    const std::string path = absolutePath(entry.file, context.sourceRoot);
    if (!llvm::sys::fs::exists(path))
      return true;
    const Name file(path);
    return outcome.files.count(file) && !outcome.brokenFiles.count(file) &&
           (!findCheckInfo(entry.check) || outcome.isShown(file, entry.check, entry.level));
  }

  std::set<std::string, std::less<>> projectMacros() {
    std::set<std::string, std::less<>> names;
    for (const std::set<Name> *files : {&outcome.files, &outcome.contextFiles})
      for (Name file : *files)
        if (project.isProject(file.str()))
          collectMacros(sources.text(file), names);
    return names;
  }

  void describeAll() {
    const bool plansFixes = wantsFixes() && !outcome.findings.empty();
    FixPlanner planner(
        sources, [this](const std::string &file) { return project.isProject(file); },
        plansFixes ? projectMacros() : std::set<std::string, std::less<>>());
    for (const Finding &finding : outcome.findings) {
      Diagnostic diagnostic = describe(finding, *findCheckInfo(finding.check), sources);
      if (outcome.isError(finding))
        diagnostic.severity = Severity::Error;
      if (plansFixes)
        diagnostic.fix = planner.plan(finding);
      if (options.format == "html")
        diagnostic.graph = graphOf(finding, sources);
      diagnostics.push_back(std::move(diagnostic));
    }
  }

  void addUnusedSuppressions() {
    if (!options.reportUnusedSuppressions)
      return;
    if (!outcome.failures.empty()) {
      remark(options.quiet,
             "unused suppressions are not reported because some of the code could not be parsed");
      return;
    }
    std::set<Name> files;
    std::set_difference(outcome.files.begin(), outcome.files.end(), outcome.changedFiles.begin(),
                        outcome.changedFiles.end(), std::inserter(files, files.end()));
    llvm::append_range(diagnostics, unusedSuppressions(files, outcome.places, sources, outcome.isEnabled));
    llvm::stable_sort(diagnostics,
                      [](const Diagnostic &a, const Diagnostic &b) { return a.where < b.where; });
  }

  std::vector<Failure> spelledFailures() {
    std::vector<Failure> failures = outcome.failures;
    for (Failure &each : failures)
      if (const UnitFailure read = unitFailure(each); isNotebook(each.file) && read.where.valid())
        each.reason = fmt::format("{}:{}: {}", each.file, sources.spelledPlace(read.where), read.text);
    return failures;
  }

  bool writeFindings() {
    std::vector<Diagnostic> shown = diagnostics;
    if (!options.showSuppressed)
      llvm::erase_if(shown, [](const Diagnostic &each) { return !each.isActive(); });
    if (options.format == "sarif" || options.format == "github" || options.format == "gitlab")
      placeInFiles(shown);
    const std::string failed = describeFailures(spelledFailures(), outcome.unitCount);
    std::string text;
    if (options.format == "sarif") {
      text = sarifReport(shown, context, sources);
    } else if (options.format == "json") {
      text = jsonReport(shown, context, sources);
    } else if (options.format == "html") {
      text = htmlReport(shown, context, sources);
    } else if (options.format == "github") {
      text = gitHubReport(shown, context, sources);
    } else if (options.format == "gitlab") {
      text = gitLabReport(shown, context);
    } else if (options.format == "concise") {
      text = conciseReport(shown, context, absolutePath("."), sources);
    } else {
      writeTextReport(shown, sources, usesColour(options.colour, options.output), text);
      text += failed;
    }
    if (!writeOutput(options.output.empty() ? "-" : options.output, text))
      return false;
    if (!options.output.empty() || (options.format != "text" && options.format != "concise"))
      llvm::errs() << failed;
    return true;
  }

  /// Who shows files besides reports knows the lines of a notebook's file, and no cells.
  void placeInFiles(std::vector<Diagnostic> &shown) {
    const auto place = [this](std::vector<Note> &notes) {
      for (Note &note : notes)
        note.where = sources.inFile(note.where);
    };
    for (Diagnostic &each : shown) {
      if (const auto cell = sources.cellOf(each.where.file, each.where.line))
        each.message += fmt::format(" (cell {}, line {})", cell->cell, cell->line);
      each.where = sources.inFile(each.where);
      place(each.notes);
      place(each.related);
      for (std::vector<Note> &flow : each.flows)
        place(flow);
    }
    for (UnitFailure &each : context.failures)
      each.where = sources.inFile(each.where);
  }

  /// "FILE:LINE:COLUMN: left: what to do", at the place where it has to be done.
  std::string lineOf(const Diagnostic &diagnostic) {
    const bool hasAdvice = !diagnostic.notes.empty() && diagnostic.notes.back().isAdvice;
    const Location &where = hasAdvice ? diagnostic.notes.back().where : diagnostic.where;
    return fmt::format("{}:{}: left: {}", relativePath(where.file.str(), context.sourceRoot),
                       sources.spelledPlace(where),
                       hasAdvice ? diagnostic.notes.back().text : diagnostic.message);
  }

  bool handleFixes(const std::vector<Diagnostic> &active, std::size_t &fixed) {
    const FixSelection selection = selectFixes(active);
    if (!options.exportFixes.empty() &&
        !writeOutput(options.exportFixes, exportedFixes(active, selection.isChosen, sources)))
      return false;
    const bool isApplied = options.fix || options.fixErrors;
    if (!options.exportFixes.empty())
      for (const Diagnostic *each : selection.conflicting)
        remark(options.quiet, fmt::format("{}:{}:{}: the fix is skipped because it overlaps another fix; run "
                                          "device-tidy again after the first one is applied",
                                          each->where.file.str(), each->where.line, each->where.column));
    return !isApplied || apply(selection, fixed);
  }

  bool apply(const FixSelection &selection, std::size_t &fixed) {
    if (!outcome.failures.empty() && !options.fixErrors) {
      remark(options.quiet,
             "no fix is applied because the code has errors; --fix-errors applies them anyway");
      return true;
    }
    const AppliedFixes applied = applyFixes(selection.changes, sources);
    for (const std::string &problem : applied.errors)
      complain(problem);
    fixed = applied.files ? static_cast<std::size_t>(llvm::count(selection.isChosen, true)) : 0;
    if (applied.errors.empty())
      remark(options.quiet, fmt::format("fixed {} of {} finding{} in {} file{}", fixed,
                                        selection.isChosen.size(), selection.isChosen.size() == 1 ? "" : "s",
                                        applied.files, applied.files == 1 ? "" : "s"));
    return applied.errors.empty();
  }

  const Outcome &outcome;
  const Options &options;
  const ProjectView &project;
  Gate &gate;
  SourceCache sources;
  ReportRun context;
  std::vector<Diagnostic> diagnostics;
};

} // namespace

ReportResult writeReport(const Outcome &outcome, const Options &options, const ProjectView &project,
                         Gate &gate) {
  return Reporter(outcome, options, project, gate).run();
}

} // namespace devicetidy::driver
