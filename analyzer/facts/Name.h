//===- Name.h - interned strings --------------------------------*- C++ -*-===//
//
// A Name is a handle to a string that is stored once per process. Facts repeat the same file names, type
// names and callee names many thousand times; comparing and hashing them is comparing a pointer. Names are
// ordered by their text so that everything derived from an order is the same in every run.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace devicetidy {

class Name {
public:
  Name() : text(&emptyText()) {}
  /// Interns `text`; safe to call from several threads.
  Name(std::string_view text);
  Name(const char *text) : Name(std::string_view(text)) {}
  Name(const std::string &text) : Name(std::string_view(text)) {}

  const std::string &str() const { return *text; }
  std::string_view view() const { return *text; }
  bool empty() const { return text->empty(); }
  explicit operator bool() const { return !empty(); }

  friend bool operator==(Name a, Name b) { return a.text == b.text; }
  friend bool operator!=(Name a, Name b) { return a.text != b.text; }
  friend bool operator<(Name a, Name b) { return a.text != b.text && *a.text < *b.text; }

  std::size_t hash() const { return std::hash<const void *>()(text); }

private:
  static const std::string &emptyText();
  const std::string *text;
};

} // namespace devicetidy

template <> struct std::hash<devicetidy::Name> {
  std::size_t operator()(devicetidy::Name name) const { return name.hash(); }
};
