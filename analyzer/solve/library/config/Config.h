//===- Config.h - values that carry options ---------------------*- C++ -*-===//
//
// JSON values, Python dictionaries and keyword arguments are records whose fields are "[key]", as std::map's
// are, so that one walk finds an option in any of them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/engine/Library.h"

#include <optional>
#include <string>

namespace devicetidy {

/// The field that holds entry `key` of a map, JSON object or dictionary.
Name entryField(std::string_view key);
/// The key of such a field; the name itself for a field of a struct.
std::string_view keyOfField(std::string_view field);
bool isEntry(std::string_view field);
/// The value of an entry; std::map keeps its entries as pairs.
Value entryValue(const Value &entry);
/// The text of argument `i` when it is known.
std::optional<std::string> textArgument(const Call &call, std::size_t i);
/// `record` without `field`.
Value withoutField(const Value &record, Name field);

/// Dotted path of the Python object that `call` calls ("torch.distributed.init_process_group"); empty when it
/// calls none, "?" when unknown.
std::string pythonCallee(const Call &call);

} // namespace devicetidy
