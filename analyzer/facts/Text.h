//===- Text.h - units as text -----------------------------------*- C++ -*-===//
//
// The readable form of a Unit: what --emit-facts prints and what tests of the solver are written in. The
// format is line oriented; '#' starts a comment line. Names are bare if they contain no blanks and no
// punctuation of the format, else quoted. A place is @file:line:column-endLine:endColumn; the file is left
// out where it is the one of the function, the end line where it is the line. Everything but the first words
// of a line may be missing.
//
//   unit /src/main.cpp torch 1.13
//   type Net record template=Net project polymorphic bases=(torch::nn::Module) fields=(fc1:torch::nn::Linear)
//   function c:@S@Net@F@forward# name=Net::forward class=Net params=1 required=1 result=at::Tensor
//   @/src/net.h:7:17-24
//     local 0 x at::Tensor @7:39-40
//     block 0
//       %0 = local 0 : at::Tensor
//       %1 = literal bool 0 : bool
//       %2 = call at::Tensor::to (%0& at::Tensor text=x @9:3-4, %1 bool) : at::Tensor object @9:5-13
//       return (%2 at::Tensor)
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Program.h"

#include <optional>
#include <string>
#include <string_view>

namespace devicetidy {

/// Everything in the unit, in a stable order.
std::string writeText(const Unit &unit);

/// Reads the text of writeText, or text in the same format. Nothing, with the line and the reason in `error`,
/// when the text is not in that format.
std::optional<Unit> readText(std::string_view text, std::string &error);

} // namespace devicetidy
