//===- Hashing.h - hashes of several things ---------------------*- C++ -*-===//
#pragma once

#include "analyzer/facts/Name.h"

#include <cstdint>

namespace devicetidy {

inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  a ^= b + 0x9e3779b97f4a7c15ULL + (a << 6) + (a >> 2);
  a *= 0xff51afd7ed558ccdULL;
  return a ^ (a >> 32);
}

/// The same in every run.
inline std::uint64_t textHash(Name name) { return std::hash<std::string_view>()(name.view()); }

} // namespace devicetidy
