#include "analyzer/lsp/Workspace.h"

#include "analyzer/driver/Paths.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

namespace devicetidy::lsp {
namespace {

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
    collectCommands(one, configuration, commands, error);
  return error;
}

/// What the configuration files above the documents are.
cache::Digest configurationOf(const DocumentMap &documents) {
  std::set<std::string> directories;
  for (const auto &[file, document] : documents)
    for (llvm::StringRef directory = llvm::sys::path::parent_path(file); !directory.empty();
         directory = llvm::sys::path::parent_path(directory))
      directories.insert(directory.str());
  cache::FileStates states;
  cache::DigestBuilder digest;
  for (const std::string &directory : directories)
    if (const auto stamp = states.stamp(Name(directory + "/" + config::configFileName.str())))
      digest.add(directory)
          .add(stamp->size)
          .add(stamp->inode)
          .add(static_cast<std::uint64_t>(stamp->modified));
  return digest.finish();
}

} // namespace

void Workspace::tell(Result &result, const std::string &problem) {
  if (!problem.empty() && told.insert(problem).second)
    result.problems.push_back(problem);
}

void Workspace::load(Project &project, Result &result) {
  std::string error;
  if (!project.database.load(error))
    return tell(result, error); // the units of an older state of it stay
  project.units = stores.preambles() ? std::make_unique<Units>(project.database, stores, making) : nullptr;
  if (!project.units)
    tell(result, "device-tidy finds no place for precompiled headers; set --cache-dir");
}

/// Gives each document to the project of its database.
void Workspace::assign(const DocumentMap &documents, const Settings &settings, Result &result) {
  const driver::Options &options = settings.options;
  for (auto &[path, project] : projects)
    project->documents.clear();
  withoutDatabase.clear();
  for (const auto &[file, document] : documents) {
    std::string path = options.buildPath;
    if (path.empty() && !options.hasFixedArguments) {
      path = driver::findDatabase(directoryOf(file));
      if (path.empty()) {
        if (withoutDatabase.insert(directoryOf(file)).second)
          tell(result, howToGetOne(options, file));
        continue;
      }
    }
    std::unique_ptr<Project> &project = projects[path];
    if (!project) {
      driver::Options own = options;
      own.buildPath = path;
      project = std::make_unique<Project>(std::move(own));
      load(*project, result);
    }
    project->documents.emplace(file, document);
  }
}

/// False when `stop` came in between.
bool Workspace::analyse(Project &project, const Settings &settings, const std::atomic<bool> &stop,
                        Result &result) {
  Units &units = *project.units;
  if (!units.update(project.documents, stop))
    return false;
  std::set<Name> open;
  for (const auto &[file, document] : project.documents)
    open.insert(Name(file));
  std::set<Name> files = units.rootFiles();
  files.insert(open.begin(), open.end());
  // Read anew each time: they are few and small.
  config::Configuration configuration(settings.options.config);
  driver::FileSettings fileSettings(configuration);
  if (std::string error; !configuration.open(error) || !fileSettings.read(files, error)) {
    tell(result, error);
    return true;
  }
  const Analysis analysis = lsp::analyse(units, fileSettings, open, stop);
  if (analysis.isStopped)
    return false;
  for (auto &[file, report] :
       present(analysis, units, project.documents, fileSettings, settings, project.database.project()))
    result.reports[file] = report;
  return true;
}

Workspace::Result Workspace::analyse(const DocumentMap &documents, const Settings &settings,
                                     const std::atomic<bool> &stop) {
  Result result;
  if (settingsKey != settings.options.buildPath) { // projects hold the options they were made with
    settingsKey = settings.options.buildPath;
    projects.clear();
  }
  const cache::Digest configured = configurationOf(documents);
  const bool isReconfigured = configured != configuration;
  configuration = configured;
  assign(documents, settings, result);
  for (auto &[path, project] : projects) {
    if (project->documents.empty())
      continue;
    if (isReconfigured || project->database.isChanged())
      load(*project, result);
    if (!project->units)
      continue;
    if (!analyse(*project, settings, stop, result)) {
      result.isStopped = true;
      result.reports.clear();
      return result;
    }
  }
  for (const auto &[file, document] : documents)
    if (!result.reports.count(file)) { // nothing is known of it, and whoever asks shall hear that
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
      withoutDatabase, [](const std::string &directory) { return !driver::findDatabase(directory).empty(); });
  return hasNewDatabase || configurationOf(documents) != configuration ||
         llvm::any_of(projects, [&](const auto &entry) {
           const Project &project = *entry.second;
           return !project.documents.empty() &&
                  (project.database.isChanged() ||
                   (project.units && project.units->isChangedOnDisk(documents)));
         });
}

} // namespace devicetidy::lsp
