#include "analyzer/lsp/Workspace.h"

#include "analyzer/driver/support/Paths.h"
#include "analyzer/lsp/Language.h"
#include "analyzer/lsp/MergeReports.h"
#include "analyzer/lsp/PythonFiles.h"
#include "analyzer/lsp/Units.h"
#include "analyzer/report/source/Source.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <algorithm>
#include <utility>

namespace devicetidy::lsp {
namespace {

/// In the place of a database's path.
constexpr llvm::StringLiteral pythonProject = "python";

std::string directoryOf(const std::string &file) { return llvm::sys::path::parent_path(file).str(); }

/// How to get a database, for the first file that has none.
std::string howToGetOne(const driver::Options &options, const std::string &file) {
  if (!llvm::sys::fs::exists(file))
    return {}; // a new buffer; its folder will be looked at when it is saved
  driver::Options one = options;
  one.files = {file};
  driver::CommandSet commands;
  std::string error;
  config::Configuration configuration(options.config);
  if (configuration.open(error))
    collectCommands(sourceRequest(one), configuration, commands, error);
  return error;
}

/// The database for files in `directory`: the one that is found by that name, or where the directory is in
/// truth. One database has one name, whichever links lead to its folder.
std::string databaseFor(const std::string &directory) {
  std::string file = driver::findDatabase(directory);
  if (file.empty())
    file = driver::findDatabase(realPath(directory));
  const std::string place = realPath(directoryOf(file));
  return place.empty() ? file : place + "/" + llvm::sys::path::filename(file).str();
}

/// What is wrong with a configuration file, shown where it is: "name:line:column: error: ...".
void addProblem(const std::string &problem, Reports &reports) {
  const auto [place, text] = llvm::StringRef(problem).split(": error: ");
  const auto [before, column] = place.rsplit(':');
  const auto [file, line] = before.rsplit(':');
  int lineNumber = 0, columnNumber = 0;
  if (text.empty() || line.getAsInteger(10, lineNumber) || column.getAsInteger(10, columnNumber))
    return;
  const llvm::lsp::Position where(std::max(lineNumber, 1) - 1, std::max(columnNumber, 1) - 1);
  const auto report = std::make_shared<FileReport>();
  report->uri = uriOf(file.str(), {});
  ShownFinding finding;
  finding.range = {where, where};
  finding.diagnostic = llvm::json::Object{{"range", toJSON(finding.range)},
                                          {"severity", 1},
                                          {"source", "device-tidy"},
                                          {"code", "device-tidy-config"},
                                          {"message", printable(text.str())}};
  report->findings.push_back(std::move(finding));
  reports.emplace(file.str(), report);
}

} // namespace

/// What the configuration files above the documents are, by either of their names.
cache::Digest Workspace::configurationOf(const DocumentMap &documents) const {
  std::set<std::string> directories;
  const auto addAbove = [&directories](const DocumentMap &files) {
    for (const auto &[file, document] : files)
      for (llvm::StringRef directory = llvm::sys::path::parent_path(file); !directory.empty();
           directory = llvm::sys::path::parent_path(directory))
        directories.insert(directory.str());
  };
  addAbove(documents);
  for (const auto &[path, project] : projects)
    addAbove(project->documents);
  cache::FileStates states;
  cache::DigestBuilder digest;
  for (const std::string &directory : directories)
    for (llvm::StringRef name : config::configFileNames)
      if (const auto stamp = states.stamp(Name(directory + "/" + name.str())))
        digest.add(directory)
            .add(stamp->size)
            .add(stamp->inode)
            .add(static_cast<std::uint64_t>(stamp->modified));
  return digest.finish();
}

void Workspace::tell(Result &result, const std::string &problem) {
  if (!problem.empty() && told.insert(problem).second)
    result.problems.push_back(problem);
}

bool Workspace::isReadByOpenUnit(const std::string &file) const {
  const auto reads = [&](const ProjectUnits &units) {
    return llvm::any_of(units.roots(), [&](std::size_t root) {
      return llvm::is_contained(units.all()[root].files, Name(file));
    });
  };
  return llvm::any_of(projects,
                      [&](const auto &entry) { return entry.second->units && reads(*entry.second->units); });
}

/// Once, and not for what the user only looks into: headers of libraries, which lie outside of the open
/// folders.
void Workspace::tellHowToGetDatabase(const DocumentMap &documents, const Settings &settings, Result &result) {
  if (hasToldHowToGetDatabase)
    return;
  for (const auto &[file, document] : documents) {
    const auto isAbove = [&file = file](const std::string &folder) { return driver::isUnder(file, folder); };
    if (!withoutDatabase.count(directoryOf(file)) || isReadByOpenUnit(file) ||
        (!settings.folders.empty() && llvm::none_of(settings.folders, isAbove)))
      continue;
    if (const std::string problem = howToGetOne(settings.options, file); !problem.empty()) {
      hasToldHowToGetDatabase = true;
      return tell(result, problem);
    }
  }
}

void Workspace::load(Project &project, Result &result) {
  std::string error;
  if (!project.database)
    return;
  if (!project.database->load(error)) {
    project.told = error;
    return tell(result, error); // the units of an older state of it stay
  }
  project.units = stores.preambles() ? std::make_unique<Units>(*project.database, stores, making) : nullptr;
  if (!project.units)
    tell(result, "device-tidy cannot find a directory for precompiled headers; set --cache-dir");
}

/// The project of the database `path`, or of Python.
Workspace::Project &Workspace::projectAt(const std::string &path, const driver::Options &options,
                                         Result &result) {
  std::unique_ptr<Project> &project = projects[path];
  if (project)
    return *project;
  project = std::make_unique<Project>();
  if (path == pythonProject) {
    project->units = std::make_unique<PythonFiles>(options.python);
  } else {
    driver::Options own = options;
    own.buildPath = path;
    project->database = std::make_unique<Database>(std::move(own));
    load(*project, result);
  }
  return *project;
}

/// Gives each document to the project of its database, or to that of Python.
void Workspace::assign(const DocumentMap &documents, const Settings &settings, Result &result) {
  const driver::Options &options = settings.options;
  for (auto &[path, project] : projects)
    project->own.clear();
  withoutDatabase.clear();
  for (const auto &[file, document] : documents) {
    std::string path = isPythonDocument(file) ? pythonProject.str() : options.buildPath;
    if (path.empty() && !options.hasFixedArguments) {
      path = databaseFor(directoryOf(file));
      if (path.empty()) {
        withoutDatabase.insert(directoryOf(file));
        continue;
      }
    }
    Project &project = projectAt(path, options, result);
    project.own.insert(project.nameOf(file));
  }
  share(documents);
}

/// Shows all documents to the projects that have some. A document of another one is looked at here too when
/// the database lists it, and one without a database when a unit reads it.
void Workspace::share(const DocumentMap &documents) {
  DocumentMap now = documents;
  for (auto &[file, document] : now)
    document.compareAgain(file);
  for (auto &[path, project] : projects) {
    project->documents.clear();
    project->opened.clear();
    if (project->own.empty())
      continue;
    for (const auto &[file, document] : now) {
      const std::string name = project->nameOf(file);
      project->opened[name].push_back(file);
      const auto [entry, isNew] = project->documents.emplace(name, document);
      if (!isNew && entry->second.isSaved) // open by two names: what was typed into one of them counts
        entry->second = document;
      const bool isHomeless = withoutDatabase.count(directoryOf(file)) != 0;
      if (!project->database)
        continue;
      if (project->database->isListed(name) || (isHomeless && project->units && project->units->knows(name)))
        project->own.insert(name);
    }
  }
}

/// False when `stop` came in between.
bool Workspace::analyse(Project &project, const Settings &settings, const std::atomic<bool> &stop,
                        Result &result) {
  ProjectUnits &units = *project.units;
  if (!units.update(project.documents, project.own, stop))
    return false;
  if (const std::string problem = units.problem(); !problem.empty()) {
    tell(result, problem);
    project.told = problem;
    return true; // what was found last stays
  }
  std::set<Name> files = units.rootFiles(), open;
  for (const auto &[file, document] : project.documents)
    if (project.own.count(file) || files.count(Name(file)))
      open.insert(Name(file));
  files.insert(open.begin(), open.end());
  // Read again each time: they are few and small.
  config::Configuration configuration(settings.options.config);
  driver::FileSettings fileSettings(configuration);
  if (std::string error; !configuration.open(error) || !fileSettings.read(files, error)) {
    tell(result, error);
    project.told = error;
    addProblem(error, result.reports);
    return true; // what was found last stays
  }
  told.erase(std::exchange(project.told, {}));
  const Analysis analysis = lsp::analyse(units, fileSettings, open, stop);
  if (analysis.isStopped)
    return false;
  project.reports = present(analysis, units, project.documents, open, fileSettings, settings);
  return true;
}

/// Returns the reports of a project under the names that the editor has for the files, in addition to what
/// other projects say of them.
void Workspace::give(const Project &project, const DocumentMap &documents, Result &result) const {
  const auto add = [&result](const std::string &file, const FileReport &report) {
    ReportPointer &known = result.reports[file];
    known = std::make_shared<FileReport>(known ? merged(*known, report) : report);
  };
  for (const auto &[file, report] : project.reports) {
    const auto names = project.opened.find(file);
    if (names == project.opened.end()) {
      if (!report->version && !documents.count(file))
        add(file, *report);
      continue;
    }
    for (const std::string &name : names->second) {
      const Document &document = documents.find(name)->second;
      FileReport own = *report;
      own.uri = document.uri;
      own.version = document.version;
      add(name, own);
    }
  }
}

Workspace::Result Workspace::analyse(const DocumentMap &documents, const Settings &settings,
                                     const std::atomic<bool> &stop) {
  Result result;
  if (settingsKey != settings.options.buildPath) { // projects hold the options they were made with
    settingsKey = settings.options.buildPath;
    projects.clear();
  }
  assign(documents, settings, result);
  const cache::Digest configured = configurationOf(documents);
  const bool isReconfigured = configured != configuration;
  configuration = configured;
  bool isReloaded = false;
  for (auto &[path, project] : projects)
    if (!project->own.empty() && (isReconfigured || project->isChanged())) {
      load(*project, result);
      isReloaded = true;
    }
  if (isReloaded) // the build may have other names now
    assign(documents, settings, result);
  for (auto &[path, project] : projects) {
    if (project->own.empty() || !project->units)
      continue;
    if (!analyse(*project, settings, stop, result)) {
      result.isStopped = true;
      result.reports.clear();
      return result;
    }
    give(*project, documents, result);
  }
  tellHowToGetDatabase(documents, settings, result);
  for (const auto &[file, document] : documents)
    if (!result.reports.count(file)) { // nothing is known about it, and requests get that answer
      const auto report = std::make_shared<FileReport>();
      report->uri = document.uri;
      report->version = document.version;
      result.reports.emplace(file, report);
    }
  return result;
}

void Workspace::refresh() {
  for (auto &[path, project] : projects)
    if (project->units)
      project->units->refresh();
}

bool Workspace::isChangedOnDisk(const DocumentMap &documents) const {
  const bool hasNewDatabase = llvm::any_of(
      withoutDatabase, [](const std::string &directory) { return !databaseFor(directory).empty(); });
  return hasNewDatabase || configurationOf(documents) != configuration ||
         llvm::any_of(projects, [&](const auto &entry) {
           const Project &project = *entry.second;
           return !project.own.empty() &&
                  (project.isChanged() ||
                   (project.units && project.units->isChangedOnDisk(project.documents)));
         });
}

} // namespace devicetidy::lsp
