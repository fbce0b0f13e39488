//===- Bodies.h - the model bodies, as facts --------------------*- C++ -*-===//
//
// What the sources below this folder say library functions do (dt.h explains them), lowered when the tool was
// built, and what files of the user say (UsingModels). A source is read when something that it models is
// asked for: a program uses few of them. No clang.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/models/UserModels.h"

#include <string_view>

namespace devicetidy::models {

/// Does a body model the function `name` ("std::copy", "dt::list::size")?
bool hasBody(Name name);
/// Does one model a method of the class `owner`?
bool hasBodies(Name owner);
/// Calls `visit` with each body of `name`, the user's first. They live as long as the process, the user's as
/// long as their models.
void forEachBody(Name name, const std::function<void(const Function &)> &visit);
/// The body with this id; null when there is none.
const Function *bodyWithId(Name id);

/// The text of dt.h, which bodies include.
std::string_view bodyHeader();

} // namespace devicetidy::models
