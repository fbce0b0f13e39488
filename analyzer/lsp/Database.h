//===- Database.h - compile commands that may change ------------*- C++ -*-===//
//
// A compile database that is read again when it changes.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/cache/FileStates.h"
#include "analyzer/driver/input/CompileDatabase.h"
#include "analyzer/driver/input/ProjectFiles.h"
#include "analyzer/driver/options/Options.h"
#include "analyzer/lsp/Spellings.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace devicetidy::lsp {

/// One compile database, as it was when it was loaded.
class Database {
public:
  /// `options` names the database (buildPath) or has the compiler arguments itself.
  explicit Database(driver::Options options) : options(std::move(options)) {}

  /// Reads it, for the first time or again. False, with a sentence in `error`, when that fails; the
  /// previous contents stay.
  bool load(std::string &error);

  /// Has the file on disk changed since the last attempt to read it?
  bool isChanged() const;

  /// How `file` is compiled: as listed, or like a file near it; a header may be read with a source that
  /// includes it. Nothing for files that are not C++.
  std::optional<driver::CompileCommand> commandFor(const std::string &file);

  /// Is `file` not compiled because it is HIP?
  bool isHip(const std::string &file) const { return hipFiles.count(file) != 0; }

  /// The name that the build has for `file`, see Spellings. The other functions take these.
  std::string spellingOf(const std::string &file) { return spellings ? spellings->of(file) : file; }

  /// Is `file` a unit of its own?
  bool isListed(const std::string &file) const { return listed.count(file) != 0; }

  const driver::CommandSet &commands() const { return set; }
  const driver::ProjectFiles &project() const { return *files; }

private:
  std::optional<cache::Stamp> stampNow() const;

  const driver::Options options;
  driver::CommandSet set;
  std::unique_ptr<driver::ProjectFiles> files;
  std::set<std::string> listed, hipFiles;
  std::unique_ptr<Spellings> spellings;                               ///< null: nothing was read yet
  std::map<std::string, std::optional<driver::CompileCommand>> known; ///< listed and guessed
  std::optional<cache::Stamp> stamp;
};

} // namespace devicetidy::lsp
