//===- Syntax.h - the syntax trees of Python files --------------*- C++ -*-===//
//
// CPython's own parser reads the files (parse.py), so the syntax is that of the interpreter that is found.
// What it makes comes as JSON; a node here is a view of one of its arrays.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Location.h"

#include "llvm/Support/JSON.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace devicetidy::python {

/// The classes of nodes, as parse.py numbers them, with the names of their fields.
using Schema = std::vector<std::vector<std::string>>;

class File;

/// A node of the tree; false where there is none.
class Node {
public:
  Node() = default;
  Node(const llvm::json::Value *value, const File *file);

  explicit operator bool() const { return array != nullptr; }
  /// The class of the node ("Call"); empty where there is none.
  std::string_view kind() const;
  bool is(std::string_view name) const { return kind() == name; }
  /// The node in a field; none where it is absent.
  Node operator[](std::string_view field) const;
  /// The nodes in a field that is a list.
  std::vector<Node> list(std::string_view field) const;
  /// A field that is a name, or empty.
  std::string text(std::string_view field) const;
  /// The names in a field that is a list of them.
  std::vector<std::string> names(std::string_view field) const;
  int number(std::string_view field) const;
  /// Of a constant: "str", "int", "float", "bool", "NoneType", .., and its text.
  std::pair<std::string, std::string> constant() const;
  Location where() const;
  /// As the user wrote it, at most 60 characters.
  Name source() const;
  /// The nodes in its fields and their lists, in their order.
  std::vector<Node> children() const;
  bool operator==(const Node &other) const { return array == other.array; }

private:
  const llvm::json::Value *field(std::string_view name) const;

  const llvm::json::Array *array = nullptr;
  const File *file = nullptr;
};

class File {
public:
  File(llvm::json::Value read, const Schema &schema);

  /// Size, inode and time of change (in nanoseconds) when it was read; nothing for a text that was given.
  std::optional<std::array<std::int64_t, 3>> stamp() const;

  Node module() const { return {tree, this}; }
  /// "path:line:column: message"; empty when the file was read.
  std::string error() const;

  std::string path;
  std::string text;
  std::vector<std::size_t> lines; ///< where each begins in the text
  const Schema &schema;

private:
  llvm::json::Value json;
  const llvm::json::Value *tree = nullptr;
};

} // namespace devicetidy::python
