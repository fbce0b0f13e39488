//===- Archives.h - what is saved and loaded --------------------*- C++ -*-===//
#pragma once

#include "analyzer/solve/engine/Machine.h"

namespace devicetidy {

/// torch::save and torch::load, modules' save and load, InputArchive and OutputArchive; `role` as the table
/// of LibTorch's functions has it. Source: torch/serialize.h and serialize/input-archive.h.
std::optional<Outcomes> modelArchives(Call &call, std::string_view role);

/// A stream that is made from a text that another stream gave holds the same.
std::optional<Value> constructStream(Call &call, Name type, const std::vector<Value> &args);

/// A call nobody models gets the stream at operand `i`: what it holds may be something else afterwards.
void forgetSaved(Call &call, std::size_t i);

} // namespace devicetidy
