//===- Binary.h - units as bytes --------------------------------*- C++ -*-===//
//
// The form facts are kept in on disk: what --emit-facts=FILE writes and linking reads. Little endian, one
// string table, guarded by a magic number and a format version; no part depends on the machine or the run
// that wrote it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Program.h"

#include <optional>
#include <string>
#include <string_view>

namespace devicetidy {

std::string writeBinary(const std::vector<Unit> &units);

/// Reads what writeBinary wrote. Nothing, with the reason in `error`, when the bytes are of another version,
/// truncated or damaged.
std::optional<std::vector<Unit>> readBinary(std::string_view bytes, std::string &error);

} // namespace devicetidy
