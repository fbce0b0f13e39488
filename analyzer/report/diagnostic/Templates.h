//===- Templates.h - the sentences of checks.json ---------------*- C++ -*-===//
//
// Looks sentences up and fills in their fields.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/report/finding/CheckInfo.h"

#include <map>
#include <string>
#include <string_view>

namespace devicetidy {

/// The sentence of the check that `key` names; empty when it has none.
std::string_view noteTemplate(const CheckInfo &info, const std::string &key);

/// `text` with every "{name}" replaced by its value in `fields`. Unknown names stay unchanged.
std::string fillTemplate(std::string_view text, const std::map<std::string, std::string> &fields);

} // namespace devicetidy
