//===- NameParts.h - looking at qualified names -----------------*- C++ -*-===//
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
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

/// By the convention of Python: "_step", but not "__init__".
inline bool isPrivateName(std::string_view name) {
  return name.substr(0, 1) == "_" && (name.size() < 2 || name.substr(name.size() - 2) != "__");
}

/// "std::vector" of "std::vector::push_back"; empty for a name of no class or namespace.
inline std::string_view scopeOf(std::string_view name) {
  const std::size_t colon = name.rfind("::");
  return colon == std::string_view::npos ? std::string_view() : name.substr(0, colon);
}

/// "Net" of "/src/net.py:Net", which is how a class of Python is told from those of other modules.
inline std::string withoutPath(std::string_view name) {
  return std::string(startsWith(name, "/") ? name.substr(name.rfind(':') + 1) : name);
}

/// The outermost namespace: "std" of "std::vector::push_back"; empty for a name of none.
inline std::string_view firstScope(std::string_view name) {
  const std::size_t colon = name.find("::");
  return colon == std::string_view::npos ? std::string_view() : name.substr(0, colon);
}

/// What a function of a C library has for a namespace: "cublas" of "cublasSgemm", "MPI" of "MPI_Send".
inline std::string_view prefixOfLibrary(std::string_view name) {
  const auto isLower = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto isUpper = [](char c) { return c >= 'A' && c <= 'Z'; };
  for (std::size_t i = 1; i < name.size(); ++i)
    if (name[i] == '_' || (isUpper(name[i]) && isLower(name[i - 1])))
      return name.substr(0, i);
  return {};
}

inline bool isAssignment(std::string_view name) { return lastPart(name) == "operator="; }

/// Is it a function of the compiler or of the C library that no program may define (`__builtin_expect`)?
inline bool isReserved(std::string_view name) { return startsWith(name, "__"); }

inline bool isOneOf(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

} // namespace devicetidy
