//===- Noqa.h - `# noqa` comments -------------------------------*- C++ -*-===//
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace devicetidy {

/// `# noqa` or `# noqa: device-mixed-op, E501`, as flake8 and ruff read it.
struct Noqa {
  std::size_t begin = 0; ///< of the word, in the comment
  std::size_t end = 0;   ///< behind the last item, or behind the word
  bool hasList = false;
  std::vector<std::string_view> items;
};

/// The first in a comment, which may say other things before.
std::optional<Noqa> findNoqa(std::string_view comment);

} // namespace devicetidy
