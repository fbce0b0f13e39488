//===- PythonComments.h - the comments of Python code -----------*- C++ -*-===//
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace devicetidy {

struct PythonComment {
  std::size_t begin; ///< byte offset of its `#`
  std::string_view text;
};

/// The comments of `source`, in their order; a `#` in a string begins none.
std::vector<PythonComment> pythonComments(std::string_view source);

/// Is the byte at `offset` part of a string literal?
bool isInPythonString(std::string_view source, std::size_t offset);

} // namespace devicetidy
