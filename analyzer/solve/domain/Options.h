//===- Options.h - what is chosen on the command line ------------*- C++ -*-===//
#pragma once

#include "analyzer/solve/domain/Term.h"

#include <string>

namespace devicetidy {

/// Stands, among options, for one of which the name is not known.
constexpr const char *anyOption = "?";

/// The value that whoever starts the program gives option `name`.
Term optionTerm(const std::string &name);
/// Is it such a value?
bool isOption(Term term);
/// Does such a value occur in `term`?
bool mentionsOption(Term term);

} // namespace devicetidy
