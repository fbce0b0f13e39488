//===- NameParts.h - looking at qualified names -----------------*- C++ -*-===//
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string_view>

namespace devicetidy {

inline bool startsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

inline bool endsWith(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}

/// "push_back" of "std::vector::push_back".
inline std::string_view lastPart(std::string_view name) {
  const std::size_t colon = name.rfind("::");
  return colon == std::string_view::npos ? name : name.substr(colon + 2);
}

inline bool isOneOf(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

} // namespace devicetidy
