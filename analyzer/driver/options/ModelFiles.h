//===- ModelFiles.h - reads the models that a project adds ------*- C++ -*-===//
//
// Files that the key Models and the option --models name: rows, and C++ bodies, which are lowered here.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/config/Settings.h"
#include "analyzer/models/UserModels.h"

#include <memory>
#include <string>
#include <vector>

namespace devicetidy::driver {

using ModelsPointer = std::shared_ptr<const models::UserModels>;

/// What `files` say together; of a name that two of them know, the later one counts. Null with a sentence in
/// `error` when one is wrong, null without one when there are no files. What has been read is kept while the
/// file's text stays the same.
ModelsPointer readModelFiles(const std::vector<config::Sourced> &files, std::string &error);

} // namespace devicetidy::driver
