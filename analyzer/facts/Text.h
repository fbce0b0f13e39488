//===- Text.h - units as text -----------------------------------*- C++ -*-===//
//
// The readable form of a Unit: what --emit-facts prints and what tests of the solver are written in. Line oriented,
// '#' starts a comment. Names are bare where they hold no blanks and no punctuation of the format, else quoted.
//
//   unit /src/main.cpp torch 1.13
//   type Net record template=Net project polymorphic bases=(torch::nn::Module) fields=(fc1:torch::nn::Linear)
//   function c:@S@Net@F@forward# name=Net::forward class=Net params=1 required=1 result=at::Tensor @/src/net.h:7:17-24
//     local 0 x at::Tensor @7:39-40
//     block 0
//       %0 = local 0 : at::Tensor
//       %1 = call at::Tensor::to object (%0& at::Tensor "x" @9:3-4, %5 bool) : at::Tensor @9:5-13
//       return %1 at::Tensor
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Program.h"

#include <string>

namespace devicetidy {

/// Everything in the unit, in a stable order.
std::string writeText(const Unit &unit);

} // namespace devicetidy
