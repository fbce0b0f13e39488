//===- Variants.h - std::variant: which alternative is held -----*- C++ -*-===//
#pragma once

#include "analyzer/solve/engine/Machine.h"

namespace devicetidy {

/// Is `value` one of `type`? Nothing when the value does not tell (unknown, null, a number of unknown kind).
std::optional<bool> isOf(const Types &types, Name type, const Value &value);

/// std::get, std::get_if, std::holds_alternative of a variant.
std::optional<Outcomes> modelVariant(Call &call);
/// What a constructor of variant (or any) class `type` makes of `args`.
Value constructVariant(const Machine &machine, Name type, const std::vector<Value> &args);
/// Methods of a variant or any.
std::optional<Outcomes> modelVariantMethod(Call &call, std::string_view method);

} // namespace devicetidy
