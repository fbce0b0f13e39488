//===- Version.h - versions of drivers, libraries and packages --*- C++ -*-===//
//
// Parses and compares version numbers.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <tuple>

namespace devicerun::doctor {

struct Version {
  int major = 0;
  int minor = -1; ///< -1: not known
  int patch = 0;
  std::string text; ///< as it was written

  bool sameRelease(int otherMajor, int otherMinor, int otherPatch) const {
    return std::tie(major, minor, patch) == std::tie(otherMajor, otherMinor, otherPatch);
  }
};

inline bool operator<(const Version &a, const Version &b) {
  return std::tie(a.major, a.minor, a.patch) < std::tie(b.major, b.minor, b.patch);
}

/// The version that `text` begins with: "2.6.0+cu124", "12", "v1.2". Nothing when it begins with no number.
std::optional<Version> parseVersion(std::string_view text);

} // namespace devicerun::doctor
