//===- Digest.h - content by its hash ---------------------------*- C++ -*-===//
//
// A hash that stands for the content of a file or a record. The cache compares digests instead of
// contents.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>

namespace devicetidy::cache {

/// The first 128 bits of a BLAKE3 hash: content that differs has digests that differ.
struct Digest {
  std::uint64_t high = 0, low = 0;

  std::string hex() const;

  friend bool operator==(const Digest &a, const Digest &b) { return a.high == b.high && a.low == b.low; }
  friend bool operator!=(const Digest &a, const Digest &b) { return !(a == b); }
  friend bool operator<(const Digest &a, const Digest &b) {
    return a.high != b.high ? a.high < b.high : a.low < b.low;
  }
};

Digest digestOf(std::string_view content);

/// Of several parts; ("ab", "c") and ("a", "bc") differ.
class DigestBuilder {
public:
  DigestBuilder &add(std::string_view part);
  DigestBuilder &add(std::uint64_t number);
  DigestBuilder &add(const Digest &digest) { return add(digest.high).add(digest.low); }
  Digest finish() const { return digestOf(bytes); }

private:
  std::string bytes;
};

/// Identifies this program: a digest of its own executable, with the release of the LLVM libraries it runs
/// on. The code, the model tables and the formats are all part of it.
const Digest &toolDigest();

} // namespace devicetidy::cache

template <> struct std::hash<devicetidy::cache::Digest> {
  std::size_t operator()(const devicetidy::cache::Digest &digest) const { return digest.low; }
};
