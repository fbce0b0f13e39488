//===- Store.h - the memory of one row --------------------------*- C++ -*-===//
//
// A persistent map from roots (variables, heap objects, globals) to values. Copying is one pointer, setting
// copies a path of small nodes, and equality is one comparison because every store carries a digest of its
// contents.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/Value.h"

#include <array>

namespace devicetidy {

class Store {
public:
  /// The value of `root`, or null when nothing was stored.
  Value get(RootId root) const;
  void set(RootId root, Value value);
  void erase(RootId root) { set(root, nullptr); }

  std::uint64_t digest() const { return digestSum; }
  /// Digest with all scalars taken as equal.
  std::uint64_t placeDigest() const { return placeSum; }

  void forEach(const std::function<void(RootId, const Value &)> &visit) const;
  /// Calls `visit` for each root whose values differ; either may be null.
  static void forEachDifference(const Store &a, const Store &b,
                                const std::function<void(RootId, const Value &, const Value &)> &visit);

private:
  static constexpr unsigned bits = 4, fanout = 1u << bits, levels = 6;
  struct Node {
    std::array<std::shared_ptr<const Node>, fanout> children;
    std::array<Value, fanout> values;
  };
  using NodePtr = std::shared_ptr<const Node>;

  static NodePtr assign(const NodePtr &node, unsigned level, RootId root, const Value &value, Value &old);
  static void walk(const NodePtr &node, unsigned level, RootId prefix,
                   const std::function<void(RootId, const Value &)> &visit);
  static void walkDifference(const NodePtr &a, const NodePtr &b, unsigned level, RootId prefix,
                             const std::function<void(RootId, const Value &, const Value &)> &visit);

  NodePtr top;
  std::uint64_t digestSum = 0, placeSum = 0;
};

} // namespace devicetidy
