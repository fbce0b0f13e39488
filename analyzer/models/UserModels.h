//===- UserModels.h - models that a project adds ----------------*- C++ -*-===//
//
// A project says what its own or a third party's library does in files of rows and of bodies
// (docs/models.md). What it says of a name takes the place of what the tables say.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/models/BodyIndex.h"
#include "analyzer/models/Rows.h"

#include <functional>
#include <memory>
#include <unordered_map>

namespace devicetidy::models {

struct UserModels {
  std::unordered_map<std::string, std::vector<Row>> rows;
  std::unordered_map<std::string, std::string> kinds; ///< of classes, as library_types.csv has them
  std::vector<Unit> units;                            ///< bodies, lowered; empty where there are only rows
  std::shared_ptr<const BodyIndex> bodies;            ///< of `units`, when all of them are there; may be null

  /// Adds what `other` says; of a name that both know, `other` counts.
  void add(const UserModels &other);
};

/// Says what is wrong with a word of a row; empty when it is right.
using WordCheck = std::function<std::string(const Effect &)>;

/// Reads a file of rows: `NAME: EFFECTS`, `type CLASS: KIND`, comments from `#` on. False, with
/// "file:line:column: error: ..." in `error`, at the first line that is wrong.
bool readUserModels(const std::string &file, std::string_view text, const WordCheck &check,
                    UserModels &models, std::string &error);

/// While it lives, the models of this thread are the built-in ones and `models` (may be null).
class UsingModels {
public:
  explicit UsingModels(const UserModels *models);
  ~UsingModels();
  UsingModels(const UsingModels &) = delete;
  UsingModels &operator=(const UsingModels &) = delete;

private:
  const UserModels *before;
};

/// Those of this thread; null when there are none.
const UserModels *userModels();

} // namespace devicetidy::models
