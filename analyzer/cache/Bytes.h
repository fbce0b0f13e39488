//===- Bytes.h - records of the cache as bytes ------------------*- C++ -*-===//
//
// Writes and reads the numbers, texts and lists of a cache record as bytes. A reader of a damaged record
// fails and never reads past its end.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/cache/Digest.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace devicetidy::cache {

/// Numbers are 8 bytes, little endian; texts and lists have their length in front.
class ByteWriter {
public:
  void number(std::uint64_t value) {
    for (int i = 0; i < 8; ++i, value >>= 8)
      bytes.push_back(static_cast<char>(value & 0xff));
  }
  void text(std::string_view value) {
    number(value.size());
    bytes += value;
  }
  void digest(const Digest &value) {
    number(value.high);
    number(value.low);
  }

  std::string bytes;
};

/// Reads what a ByteWriter wrote. Past the end everything is zero and empty, and `ok` is false.
class ByteReader {
public:
  explicit ByteReader(std::string_view bytes) : rest(bytes) {}

  std::uint64_t number() {
    if (rest.size() < 8) {
      ok = false;
      return 0;
    }
    std::uint64_t value = 0;
    for (int i = 7; i >= 0; --i)
      value = value << 8 | static_cast<unsigned char>(rest[static_cast<std::size_t>(i)]);
    rest.remove_prefix(8);
    return value;
  }
  std::string_view text() {
    const std::uint64_t size = number();
    if (size > rest.size()) {
      ok = false;
      return {};
    }
    const std::string_view value = rest.substr(0, size);
    rest.remove_prefix(size);
    return value;
  }
  Digest digest() {
    const std::uint64_t high = number();
    return {high, number()};
  }
  /// The length of a list whose items take at least 8 bytes each.
  std::uint64_t count() {
    const std::uint64_t value = number();
    if (value > rest.size() / 8)
      ok = false;
    return ok ? value : 0;
  }

  std::string_view rest;
  bool ok = true;
};

} // namespace devicetidy::cache
