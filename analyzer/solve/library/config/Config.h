//===- Config.h - values that carry options ---------------------*- C++ -*-===//
//
// JSON values, Python dictionaries and keyword arguments are records whose fields are "[key]", as std::map's
// are, so that one walk finds an option in any of them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/engine/Machine.h"

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

/// Models of nlohmann::json (Json.cpp), pybind11 and Python's C interface (Python.cpp).
std::optional<Outcomes> modelJson(Call &call);
std::optional<Outcomes> modelPython(Call &call);
std::optional<Value> constructJson(Call &call, Name type, const std::vector<Value> &args);
std::optional<Value> constructPython(Call &call, Name type, const std::vector<Value> &args);

/// Both, and what other option containers share: entries set, removed and asked for by name.
std::optional<Outcomes> modelConfig(Call &call);
std::optional<Value> constructConfig(Call &call, Name type, const std::vector<Value> &args);

/// Dotted path of the Python object that `call` calls ("torch.distributed.init_process_group"); empty when it
/// calls none, "?" when nobody knows which.
std::string pythonCallee(const Call &call);

} // namespace devicetidy
