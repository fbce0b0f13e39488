//===- Store.h - the memory of one row --------------------------*- C++ -*-===//
//
// A persistent map from roots (variables, heap objects, globals) to values. Copying is a few pointers,
// setting copies a path of small nodes (or writes into them when no other store shares them), and equality is
// one comparison because every store carries a digest of its contents. Each node knows the digest and the
// marks of what is below it, so that comparing two stores and looking for values that mention something pass
// by what is equal or mentions nothing.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/domain/Value.h"

#include <array>

namespace devicetidy {

class Store {
public:
  /// The value of `root`, or null when nothing was stored.
  Value get(RootId root) const;
  void set(RootId root, Value value);
  void erase(RootId root) { set(root, nullptr); }

  std::uint64_t digest() const;
  /// Digest with all scalars taken as equal.
  std::uint64_t placeDigest() const;

  /// What some value of it may mention.
  std::uint64_t marks() const;

  using Visitor = std::function<void(RootId, const Value &)>;
  /// Calls `visit` for each root in ascending order; with `wanted`, only for values that have all these
  /// marks.
  void forEach(const Visitor &visit, std::uint64_t wanted = 0) const;
  /// The same for the roots of one kind.
  void forEach(RootKind kind, const Visitor &visit, std::uint64_t wanted = 0) const;
  bool holdsAny(RootKind kind) const { return treeOf(kind).top != nullptr; }
  using DifferenceVisitor = std::function<void(RootId, const Value &, const Value &)>;
  /// Calls `visit` for each root whose values differ; either may be null.
  static void forEachDifference(const Store &a, const Store &b, const DifferenceVisitor &visit);
  /// The same for the roots of one kind.
  static void forEachDifference(RootKind kind, const Store &a, const Store &b,
                                const DifferenceVisitor &visit);

  /// This store without the locals and heap objects.
  Store outer() const;
  /// This store without the globals, either.
  Store outside() const;
  /// This store with the roots of `kind` as they are in `other`.
  Store with(RootKind kind, const Store &other) const;

  /// False: no heap object was added and no address was lost since noteCollected(), so whatever was in use
  /// then is in use now.
  bool mayHoldGarbage() const { return garbage; }
  void noteCollected() { garbage = false; }

private:
  static constexpr unsigned bits = 4, fanout = 1u << bits;
  struct Node {
    std::uint64_t digest = 0, marks = 0; ///< of all values below
    std::uint32_t count = 0;             ///< of values below
  };
  using NodePtr = std::shared_ptr<Node>;
  struct Inner : Node {
    std::array<NodePtr, fanout> children;
  };
  struct Leaf : Node {
    std::array<Value, fanout> values;
  };
  /// The roots of one kind, below a node for each `bits` bits of their index.
  struct Tree {
    NodePtr top;
    unsigned level = 0;            ///< of `top`; leaves have 0
    std::uint64_t placeDigest = 0; ///< of all values below
  };
  struct Change;

  const Tree &treeOf(RootKind kind) const { return trees[static_cast<std::size_t>(kind)]; }
  static void assign(NodePtr &node, unsigned level, Change &change);
  static std::uint64_t marksBelow(const Node &node, unsigned level);
  static void walk(const Node *node, unsigned level, RootId prefix, std::uint64_t wanted,
                   const Visitor &visit);
  static void walkDifference(const Node *a, unsigned levelOfA, const Node *b, unsigned levelOfB,
                             RootId prefix, const DifferenceVisitor &visit);

  std::array<Tree, rootKinds> trees;
  bool garbage = false;
};

} // namespace devicetidy
