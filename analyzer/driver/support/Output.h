//===- Output.h - errors, remarks and output files --------------*- C++ -*-===//
//
// Writes to standard error and to output files.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <string>

namespace devicetidy::driver {

/// When the report is coloured. Auto: on a terminal that can, unless NO_COLOR is set.
enum class Colour : std::uint8_t { Auto, Always, Never };

/// An error on standard error.
void complain(const std::string &sentence);
/// A remark on standard error, unless the user asked for quiet.
void remark(bool isQuiet, const std::string &sentence);

/// Is a line of progress shown on standard error?
bool showsProgress(bool isQuiet);
/// Is the report in `file` coloured (empty: on standard output)?
bool usesColour(Colour colour, const std::string &file);

/// Flushes standard output. Prints an error and returns false when that fails.
bool flushOutput();

/// Writes `text` to `file`, or to standard output for "-". Prints an error and returns false when that fails.
bool writeOutput(const std::string &file, const std::string &text);

} // namespace devicetidy::driver
