//===- Text.h - numbers and sizes in text -----------------------*- C++ -*-===//
//
// Parses the values of options, and finds the nearest known word for a misspelt one.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace devicerun {

/// A decimal integer that makes up the whole of `text`.
std::optional<std::int64_t> parseInteger(std::string_view text);

/// A number of seconds, whole or not, greater than 0.
std::optional<double> parseSeconds(std::string_view text);

/// A size in bytes: a number, then K, M, G or T (powers of 1024), optionally followed by B or iB.
std::optional<std::uint64_t> parseBytes(std::string_view text);

/// "12 B", "3.5 KiB", "1.2 GiB".
std::string formatBytes(std::uint64_t bytes);

/// "SIGSEGV (segmentation fault)".
std::string describeSignal(int signal);

/// The candidate most like `word`, or nothing when none is close enough to be a slip of the keys.
std::optional<std::string> nearestTo(std::string_view word, const std::vector<std::string> &candidates);

std::vector<std::string> split(std::string_view text, char separator);

/// `text` without blanks at both ends.
std::string_view trimmed(std::string_view text);

} // namespace devicerun
