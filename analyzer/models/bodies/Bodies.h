//===- Bodies.h - the model bodies, as facts --------------------*- C++ -*-===//
//
// What the sources below this folder say library functions do (dt.h explains them), lowered when the tool was
// built, and what files of the user say. No clang.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/models/UserModels.h"

#include <string_view>

namespace devicetidy::models {

/// The program that all model bodies of this thread make (UsingModels). The built-in one lives as long as the
/// process.
const std::shared_ptr<const Program> &bodies();

/// Links the bodies of `models` with the built-in ones. To be called once, when all of them are there.
void linkBodies(UserModels &models);

/// The text of dt.h, which bodies include.
std::string_view bodyHeader();

} // namespace devicetidy::models
