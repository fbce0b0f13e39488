//===- HtmlChange.h - a change of the source for a page ---------*- C++ -*-===//
//
// The lines that a fix changes, the old ones and the new ones apart.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/report/fix/Fix.h"

#include <string>
#include <string_view>

namespace devicetidy {

/// A <pre> with the lines of `source` that `change` replaces as <del>, and what they become as <ins>. Lines
/// that stay are neither. Empty when the change lies outside `source`.
std::string htmlChange(std::string_view source, const Replacement &change);

} // namespace devicetidy
