//===- Workspace.h - everything that is open, analysed ----------*- C++ -*-===//
//
// Documents are analysed together with those that share their compile database; each database is a project of
// its own, and all Python files are one. What the units of a project read is what the editor shows, whichever
// project it belongs to: then several projects have results for one document. Used by one thread.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/lsp/Database.h"
#include "analyzer/lsp/Present.h"
#include "analyzer/lsp/ProjectUnits.h"
#include "analyzer/lsp/Stores.h"

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace devicetidy::lsp {

class Workspace {
public:
  /// `making`: see Units.
  Workspace(const driver::Options &options, std::function<void(bool)> making)
      : stores(options), making(std::move(making)) {}

  struct Result {
    Reports reports;                   ///< one for each open document, and for headers with findings
    std::vector<std::string> problems; ///< messages for the user, each shown once
    bool isStopped = false;            ///< then there are no reports
  };
  Result analyse(const DocumentMap &documents, const Settings &settings, const std::atomic<bool> &stop);

  /// Files may have changed on disk.
  void refresh();
  /// Has a database or a file that the documents depend on changed on disk?
  bool isChangedOnDisk(const DocumentMap &documents) const;

private:
  struct Project {
    std::unique_ptr<Database> database;                     ///< null: Python needs none
    std::unique_ptr<ProjectUnits> units;                    ///< null: the database could not be read
    DocumentMap documents;                                  ///< all that are open, by the build's names
    std::set<std::string> own;                              ///< those that are analysed through its units
    std::map<std::string, std::vector<std::string>> opened; ///< the editor's names of the documents
    Reports reports;                                        ///< of the last analysis, by the build's names
    std::string told; ///< the last error; reported again when it returns
    std::string nameOf(const std::string &file) const { return database ? database->spellingOf(file) : file; }
    bool isChanged() const { return database && database->isChanged(); }
  };

  bool analyse(Project &project, const Settings &settings, const std::atomic<bool> &stop, Result &result);
  cache::Digest configurationOf(const DocumentMap &documents) const;
  void assign(const DocumentMap &documents, const Settings &settings, Result &result);
  void share(const DocumentMap &documents);
  void give(const Project &project, const DocumentMap &documents, Result &result) const;
  void load(Project &project, Result &result);
  Project &projectAt(const std::string &path, const driver::Options &options, Result &result);
  void tell(Result &result, const std::string &problem);
  void tellHowToGetDatabase(const DocumentMap &documents, const Settings &settings, Result &result);
  bool isReadByOpenUnit(const std::string &file) const;

  Stores stores;
  const std::function<void(bool)> making;
  std::string settingsKey;
  std::map<std::string, std::unique_ptr<Project>> projects; ///< by the path of the database
  std::set<std::string> withoutDatabase;                    ///< directories of documents
  std::set<std::string> told;
  bool hasToldHowToGetDatabase = false;
  cache::Digest configuration; ///< of the configuration files that were read
};

} // namespace devicetidy::lsp
