//===- Binary.h - units as bytes --------------------------------*- C++ -*-===//
//
// The format of facts on disk: --emit-facts=FILE writes it, --link reads it, and the cache stores it. It is
// little endian with one string table, after a magic number, a format version, the version of the tool and a
// checksum. No part depends on the machine or the run that wrote it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/FactsFile.h"

#include <optional>
#include <string>
#include <string_view>

namespace devicetidy {

std::string writeFacts(const FactsFile &file);

/// Reads what writeFacts wrote. Nothing, with the reason in `error` (a clause without a subject, "is empty"),
/// when the bytes are in another format or version, truncated or damaged.
std::optional<FactsFile> readFacts(std::string_view bytes, std::string &error);

/// The same for units only.
std::string writeBinary(const std::vector<Unit> &units);
std::optional<std::vector<Unit>> readBinary(std::string_view bytes, std::string &error);

} // namespace devicetidy
