//===- Json.h - writes JSON lines -------------------------------*- C++ -*-===//
//
// One JSON object per line, built by appending.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "CallStack.h"

#include <c10/util/ArrayRef.h>

#include <string>
#include <string_view>

namespace vcuda {

class JsonLine {
public:
  JsonLine() : text_("{") {}

  JsonLine &text(std::string_view name, std::string_view value);
  JsonLine &number(std::string_view name, double value);
  JsonLine &integer(std::string_view name, long long value);
  JsonLine &integers(std::string_view name, c10::ArrayRef<int64_t> values);
  JsonLine &stack(std::string_view name, const CallStack &stack);
  /// `value` is JSON already.
  JsonLine &json(std::string_view name, std::string_view value);

  /// The finished object without a line end.
  std::string take() { return std::move(text_) + "}"; }

private:
  void key(std::string_view name);

  std::string text_;
};

/// A string literal; bytes that are not UTF-8 become U+FFFD.
std::string quoted(std::string_view text);

} // namespace vcuda
