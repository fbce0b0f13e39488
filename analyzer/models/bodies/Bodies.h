//===- Bodies.h - the model bodies, as facts --------------------*- C++ -*-===//
//
// What the sources below this folder say library functions do (dt.h explains them), lowered when the tool was
// built, and what files of the user say (UsingModels). A source is read when something that it models is
// asked for: a program uses few of them. No clang.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/models/UserModels.h"

#include <set>
#include <string>
#include <string_view>

namespace devicetidy::models {

/// The bodies of the function `name` ("std::copy", "dt::list::size"), the user's first. They live as long as
/// the process, the user's as long as their models.
std::vector<const Function *> bodiesOf(Name name);
/// Does a body model a method of the class `owner`?
bool hasBodies(Name owner);
/// The body with this id; null when there is none.
const Function *bodyWithId(Name id);

/// The functions that have bodies, sorted.
std::set<std::string> namesWithBodies();

/// The text of dt.h, which bodies include.
std::string_view bodyHeader();

} // namespace devicetidy::models
