//===- Units.h - the facts behind what is open ------------------*- C++ -*-===//
//
// The units of open documents are parsed with the text of the buffers; the other units of the program come
// from the cache, as they do when device-tidy is given FILES.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/cache/UnitCache.h"
#include "analyzer/driver/input/LinkMap.h"
#include "analyzer/facts/Program.h"
#include "analyzer/lsp/Database.h"
#include "analyzer/lsp/Documents.h"
#include "analyzer/lsp/Stores.h"
#include "analyzer/lsp/WarmPreambles.h"

#include <atomic>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace devicetidy::lsp {

class Units {
public:
  /// `making` is called when LibTorch's headers are read, which takes seconds: true before, false after.
  Units(Database &database, Stores &stores, std::function<void(bool)> making);

  /// Updates the units for `documents`, all that are open. Those of `own` are analysed through units of this
  /// database; the others are only read by them. False when it was stopped; the next call continues.
  bool update(const DocumentMap &documents, const std::set<std::string> &own, const std::atomic<bool> &stop);
  /// Is `file` part of a unit that was read before?
  bool knows(const std::string &file);

  /// Files may have changed on disk: the next update compares all of them.
  void refresh();
  /// Has a file that an open document or the program around it is made of changed on disk since, or has
  /// another process read a unit that is missing here?
  bool isChangedOnDisk(const DocumentMap &documents) const;

  /// All units, in the order in which they are linked. A unit without valid facts is empty.
  const std::vector<Unit> &all() const { return units; }
  /// Those that are parsed for the documents, as indices.
  std::vector<std::size_t> roots() const;
  const driver::LinkMap &links() const { return linkMap; }
  /// Project files that the roots read.
  std::set<Name> rootFiles() const;
  /// Is `file` the main file of a unit?
  bool isMainFile(const std::string &file) const { return database.isListed(file); }

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
