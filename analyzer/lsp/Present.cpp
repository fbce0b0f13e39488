#include "analyzer/lsp/Present.h"

#include "analyzer/driver/support/Paths.h"
#include "analyzer/lsp/Positions.h"
#include "analyzer/report/diagnostic/Describe.h"
#include "analyzer/report/diagnostic/NoLint.h"
#include "analyzer/report/diagnostic/NoLintPlanner.h"
#include "analyzer/report/diagnostic/PythonText.h"
#include "analyzer/report/diagnostic/SelectFixes.h"
#include "analyzer/report/diagnostic/ShownPlace.h"
#include "analyzer/report/finding/DescribePlaced.h"
#include "analyzer/report/finding/StepText.h"
#include "analyzer/report/fix/FixPlanner.h"
#include "analyzer/report/source/Text.h"
#include "checks/CheckRegistry.h"

#include "llvm/Support/Path.h"

#include <iterator>
#include <tuple>

namespace devicetidy::lsp {
namespace {

namespace json = llvm::json;

enum SeverityNumber { Error = 1, Warning = 2, Information = 3 }; // of the protocol

int severityOf(const Diagnostic &diagnostic) {
  if (diagnostic.severity == Severity::Error)
    return Error;
  return diagnostic.level == Level::Latent ? Information : Warning;
}

class Presenter {
public:
  Presenter(const Analysis &analysis, const ProjectUnits &units, const DocumentMap &documents,
            const std::set<Name> &shownFiles, const driver::FileSettings &fileSettings,
            const Settings &settings)
      : analysis(analysis), units(units), documents(documents), shownFiles(shownFiles),
        fileSettings(fileSettings), settings(settings), rootFiles(units.rootFiles()) {
    for (const auto &[file, document] : documents)
      sources.provide(Name(file), *document.text);
  }

  Reports run() {
    for (const auto &[file, document] : documents)
      if (shownFiles.count(Name(file))) {
        reportOf(file).uri = document.uri;
        reportOf(file).version = document.version;
      }
    addFindings();
    addPlacements();
    addFailures();
    Reports result;
    for (auto &[file, report] : reports)
      result.emplace(file, std::move(report));
    return result;
  }

private:
  FileReport &reportOf(const std::string &file) {
    std::shared_ptr<FileReport> &report = reports[file];
    if (!report) {
      report = std::make_shared<FileReport>();
      report->uri = uriOf(file, documents);
    }
    return *report;
  }

  /// Open documents, and headers of the units they are in.
  bool isShown(Name file) const {
    if (documents.count(file.str()))
      return shownFiles.count(file) != 0;
    return rootFiles.count(file) && !units.isMainFile(file.str()) && fileSettings.showsHeader(file);
  }
  bool isShown(const Finding &finding) const {
    return fileSettings.isWanted(finding) && isShown(finding.where.file);
  }

  void addFindings() {
    std::set<std::string, std::less<>> macros;
    for (Name file : rootFiles)
      collectMacros(sources.text(file), macros);
    FixPlanner planner(
        sources, [this](const std::string &file) { return units.isProject(file); }, std::move(macros));
    std::vector<Diagnostic> diagnostics;
    for (const Finding &finding : analysis.findings) {
      if (!isShown(finding) && !(fileSettings.isWanted(finding) && touches(finding, shownFiles)))
        continue;
      Diagnostic diagnostic = describe(finding, *findCheckInfo(finding.check), sources);
      if (fileSettings.isError(finding))
        diagnostic.severity = Severity::Error;
      diagnostic.fix = planner.plan(finding);
      diagnostics.push_back(std::move(diagnostic));
    }
    applyNoLint(diagnostics, sources);
    NoLintPlanner suppressions(sources);
    for (const Diagnostic &diagnostic : diagnostics)
      if (!diagnostic.isSuppressed)
        show(diagnostic, suppressions);
    addRepairs(diagnostics);
  }

  /// In its own file, and where the mistake was made; if its own file is not shown, in an open one that it
  /// comes through.
  void show(const Diagnostic &diagnostic, NoLintPlanner &suppressions) {
    const bool isShownThere = isShown(diagnostic.where.file);
    if (isShownThere)
      reportOf(diagnostic.where.file.str()).findings.push_back(shown(diagnostic, suppressions));
    const auto isWanted = [&](const Location &where) {
      return shownFiles.count(where.file) && where.file != diagnostic.where.file &&
             (!isShownThere || where == diagnostic.cause);
    };
    if (Diagnostic elsewhere = diagnostic; showWhereItEnters(elsewhere, isWanted))
      reportOf(elsewhere.where.file.str()).findings.push_back(shown(elsewhere, suppressions));
  }

  void addRepairs(const std::vector<Diagnostic> &diagnostics) {
    for (const Replacement &change : selectFixes(diagnostics).changes)
      if (shownFiles.count(change.where.file) && isUtf8(change.text))
        reportOf(change.where.file.str()).repairs.push_back(shown({{}, change}));
  }

  ShownFinding shown(const Diagnostic &diagnostic, NoLintPlanner &suppressions) {
    ShownFinding result;
    result.range = toRange(sources, diagnostic.where);
    std::string message = printable(diagnostic.message);
    json::Array related;
    for (const Note &note : diagnostic.notes)
      if (settings.relatedInformation)
        related.push_back(
            json::Object{{"location", json::Object{{"uri", uriOf(note.where.file.str(), documents)},
                                                   {"range", toJSON(toRange(sources, note.where))}}},
                         {"message", printable(note.text)}});
      else
        message += "\n" + placeOf(note.where) + ": " + printable(note.text);
    json::Object object{{"range", toJSON(result.range)},
                        {"severity", severityOf(diagnostic)},
                        {"source", "device-tidy"},
                        {"code", diagnostic.check},
                        {"message", std::move(message)}};
    if (!related.empty())
      object["relatedInformation"] = std::move(related);
    result.diagnostic = std::move(object);
    if (const std::optional<Fix> &fix = diagnostic.fix; fix && isUtf8(fix->change.text))
      result.fix = shown(*fix);
    if (documents.count(diagnostic.where.file.str()))
      if (const std::optional<Fix> comment = suppressions.plan(diagnostic))
        result.suppression = shown(*comment);
    return result;
  }

  ShownFix shown(const Fix &fix) {
    const std::string &file = fix.change.where.file.str();
    const auto document = documents.find(file);
    return {printable(fix.description), uriOf(file, documents),
            document == documents.end() ? std::nullopt : std::optional(document->second.version),
            toEditedRange(sources, fix.change.where), fix.change.text};
  }

  /// "train.cpp:12"
  static std::string placeOf(const Location &where) {
    return llvm::sys::path::filename(where.file.str()).str() + ":" + std::to_string(where.line);
  }

  ShownStep shown(const Step &step) {
    return {printable(spokenIn(step.where.file, describeStep(step))), placeOf(step.where),
            uriOf(step.where.file.str(), documents), toRange(sources, step.where)};
  }

  /// Devices of one expression follow each other; an expression of several programs comes several times.
  void addPlacements() {
    using Place = std::tuple<Name, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;
    std::map<Place, std::vector<PlacedExpression>> places;
    for (const PlacedExpression &each : analysis.placed) {
      const Location &where = each.where;
      std::vector<PlacedExpression> &devices =
          places[{where.file, where.line, where.column, where.endLine, where.endColumn}];
      const auto isSame = [&](const PlacedExpression &other) { return other.device == each.device; };
      if (std::none_of(devices.begin(), devices.end(), isSame))
        devices.push_back(each);
    }
    for (const auto &[place, devices] : places)
      reportOf(std::get<0>(place).str()).placements.push_back(shown(devices));
  }

  ShownPlacement shown(const std::vector<PlacedExpression> &devices) {
    ShownPlacement result;
    const PlacedExpression &first = devices.front();
    result.range = toRange(sources, first.where);
    result.kind = first.kind;
    for (const PlacedExpression &each : devices) {
      result.isDeclaration |= each.isDeclaration;
      result.isOpen |= each.isOpen;
      std::vector<ShownStep> &history = result.histories.emplace_back();
      for (const Step &step : toldSteps(each.history))
        if (step.where.valid())
          history.push_back(shown(step));
      if (const Step *placing = placingStep(each))
        result.placing.push_back(shown(*placing));
      result.devices.push_back(each);
      result.devices.back().history.clear();
    }
    return result;
  }

  /// An open file of which nothing could be analysed says so: no finding would look like a clean result.
  void addFailures() {
    for (std::size_t root : units.roots()) {
      const Unit &unit = units.all()[root];
      const std::string &file = unit.mainFile.str();
      if (!unit.hasFatalError || unit.parseErrors.empty() || !documents.count(file))
        continue;
      const auto [place, text] = llvm::StringRef(unit.parseErrors.front()).split(": error: ");
      Location where;
      where.file = Name(file);
      where.line = 1;
      where.column = 1;
      llvm::StringRef rest = place;
      if (rest.consume_front(file + ":")) {
        const auto [line, column] = rest.split(':');
        if (line.getAsInteger(10, where.line) || column.getAsInteger(10, where.column))
          where.line = where.column = 1;
      }
      addRemark(where, "nothing in this file could be analysed: " +
                           (text.empty() ? unit.parseErrors.front() : text.str()));
    }
    for (const auto &[file, document] : documents)
      if (const std::string reason = shownFiles.count(Name(file)) ? units.whyLeftOut(file) : std::string();
          !reason.empty())
        addRemark({Name(file), 1, 1}, "nothing in this file is analysed: " + reason);
  }

  void addRemark(const Location &where, const std::string &sentence) {
    ShownFinding remark;
    remark.range = toRange(sources, where);
    remark.diagnostic = json::Object{{"range", toJSON(remark.range)},
                                     {"severity", static_cast<int>(Information)},
                                     {"source", "device-tidy"},
                                     {"code", "device-tidy-parse"},
                                     {"message", printable(sentence)}};
    reportOf(where.file.str()).findings.push_back(std::move(remark));
  }

  const Analysis &analysis;
  const ProjectUnits &units;
  const DocumentMap &documents;
  const std::set<Name> &shownFiles;
  const driver::FileSettings &fileSettings;
  const Settings &settings;
  const std::set<Name> rootFiles;
  SourceCache sources;
  std::map<std::string, std::shared_ptr<FileReport>> reports;
};

/// `file` by the way that the editor went to an open file near it, through a link or not.
std::string asOpened(const std::string &file, const DocumentMap &documents) {
  const auto next = documents.lower_bound(file);
  if (documents.empty())
    return file;
  const auto &[name, document] = next == documents.begin() ? *next : *std::prev(next);
  llvm::Expected<llvm::lsp::URIForFile> uri = llvm::lsp::URIForFile::fromURI(document.uri);
  if (!uri) {
    llvm::consumeError(uri.takeError());
    return file;
  }
  namespace path = llvm::sys::path;
  llvm::StringRef built = name, opened = uri->file();
  if (built == opened)
    return file;
  while (!built.empty() && path::filename(built) == path::filename(opened)) {
    built = path::parent_path(built);
    opened = path::parent_path(opened);
  }
  if (!driver::isUnder(file, built))
    return file;
  return (opened + llvm::StringRef(file).drop_front(built == "/" ? 0 : built.size())).str();
}

} // namespace

std::string uriOf(const std::string &file, const DocumentMap &documents) {
  if (const auto found = documents.find(file); found != documents.end())
    return found->second.uri;
  llvm::Expected<llvm::lsp::URIForFile> uri = llvm::lsp::URIForFile::fromFile(asOpened(file, documents));
  if (uri)
    return uri->uri().str();
  llvm::consumeError(uri.takeError());
  return "file://" + file;
}

Reports present(const Analysis &analysis, const ProjectUnits &units, const DocumentMap &documents,
                const std::set<Name> &shown, const driver::FileSettings &fileSettings,
                const Settings &settings) {
  return Presenter(analysis, units, documents, shown, fileSettings, settings).run();
}

} // namespace devicetidy::lsp
