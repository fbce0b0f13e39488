//===- Units.h - the facts behind what is open ------------------*- C++ -*-===//
//
// The units of open documents are parsed with the text of the buffers; the other units of the program come
// from the cache, as they do when device-tidy is given FILES.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/cache/UnitCache.h"
#include "analyzer/lsp/Database.h"
#include "analyzer/lsp/ProjectUnits.h"
#include "analyzer/lsp/Stores.h"
#include "analyzer/lsp/WarmPreambles.h"

#include <atomic>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace devicetidy::lsp {

class Units : public ProjectUnits {
public:
  /// `making` is called when LibTorch's headers are read, which takes seconds: true before, false after.
  Units(Database &database, Stores &stores, std::function<void(bool)> making);

  bool update(const DocumentMap &documents, const std::set<std::string> &own,
              const std::atomic<bool> &stop) override;
  bool knows(const std::string &file) override;
  void refresh() override;
  bool isChangedOnDisk(const DocumentMap &documents) const override;
  const std::vector<Unit> &all() const override { return units; }
  std::vector<std::size_t> roots() const override;
  const driver::LinkMap &links() const override { return linkMap; }
  std::set<Name> rootFiles() const override;
  bool isMainFile(const std::string &file) const override { return database.isListed(file); }
  bool isProject(const std::string &file) const override { return database.project().isProject(file); }
  std::string whyLeftOut(const std::string &file) const override;

private:
  /// What the text of a unit's project files was: a number for each file.
  using State = std::map<std::string, std::uint64_t>;
  struct Member {
    driver::CompileCommand command;
    bool isRoot = false;
    bool isKnown = false;        ///< the unit is valid for `state`
    std::set<std::string> files; ///< project files of the unit, the main file among them
    State state;                 ///< when the member was last checked
    bool isPartial = false;      ///< facts from files that have changed since are missing in the unit
    std::string entry;           ///< its place in the cache, once it was searched
    std::uint64_t entryState = 0;
  };

  void load();
  /// Returns those that are not in the cache.
  std::vector<std::size_t> loadContext(const std::vector<std::size_t> &which);
  void chooseRoots(const std::set<std::string> &own);
  std::size_t memberFor(const driver::CompileCommand &command);
  std::size_t includerOf(const std::string &header) const;
  void settleContext(const DocumentMap &documents);
  void keepIntact(std::size_t index, const DocumentMap &documents);
  bool hasNewEntry(const Member &member) const;
  void noteEntry(Member &member);
  bool parseRoot(std::size_t index, const DocumentMap &documents, const std::atomic<bool> &stop);
  static State stateOf(const Member &member, const DocumentMap &documents, cache::FileStates &states);
  static bool isAsBefore(const Member &member, const DocumentMap &documents, cache::FileStates &states);
  void setUnit(std::size_t index, Unit unit);
  void clearUnit(std::size_t index);

  Database &database;
  Stores &stores;
  const frontend::LowerOptions lowerOptions;
  WarmPreambles preambles;
  std::vector<Member> members; ///< beside `units`
  std::vector<Unit> units;
  driver::LinkMap linkMap;
  bool isLoaded = false, hasLinks = false, mayHaveChanged = false;
};

} // namespace devicetidy::lsp
