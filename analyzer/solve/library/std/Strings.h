//===- Strings.h - text that names devices ----------------------*- C++ -*-===//
#pragma once

#include "analyzer/solve/engine/Machine.h"

namespace devicetidy {

/// Methods of std::string and std::string_view: what is known of the text decides the answer.
std::optional<Outcomes> modelString(Call &call, std::string_view method);
/// to_string, stoi, + on strings ...
std::optional<Outcomes> modelStringFunction(Call &call, std::string_view name);

} // namespace devicetidy
