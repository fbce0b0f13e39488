//===- ProjectUnits.h - the units that documents are analysed through -*- C++ -*-===//
//
// What the analysis and its presentation ask of a project, in whichever language it is. Used by one thread.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/driver/input/LinkMap.h"
#include "analyzer/facts/Program.h"
#include "analyzer/lsp/Documents.h"

#include <atomic>
#include <set>
#include <string>
#include <vector>

namespace devicetidy::lsp {

class ProjectUnits {
public:
  virtual ~ProjectUnits() = default;

  /// Updates the units for `documents`, all that are open. Those of `own` are analysed through units of this
  /// project; the others are only read by them. False when it was stopped; the next call continues.
  virtual bool update(const DocumentMap &documents, const std::set<std::string> &own,
                      const std::atomic<bool> &stop) = 0;
  /// Is `file` part of a unit that was read before?
  virtual bool knows(const std::string &file) = 0;

  /// Files may have changed on disk: the next update compares all of them.
  virtual void refresh() = 0;
  /// Has a file that an open document or the program around it is made of changed on disk since, or has
  /// another process read a unit that is missing here?
  virtual bool isChangedOnDisk(const DocumentMap &documents) const = 0;

  /// All units, in the order in which they are linked. A unit without valid facts is empty.
  virtual const std::vector<Unit> &all() const = 0;
  /// Those that are parsed for the documents, as indices.
  virtual std::vector<std::size_t> roots() const = 0;
  virtual const driver::LinkMap &links() const = 0;
  /// Project files that the roots read.
  virtual std::set<Name> rootFiles() const = 0;
  /// Is `file` the main file of a unit?
  virtual bool isMainFile(const std::string &file) const = 0;
  /// Is `file` the user's own?
  virtual bool isProject(const std::string &file) const = 0;
  /// Why nothing in a document is analysed, or empty.
  virtual std::string whyLeftOut(const std::string &file) const = 0;
  /// Why no document could be read at the last update, or empty.
  virtual std::string problem() const { return {}; }
};

} // namespace devicetidy::lsp
