#include "analyzer/solve/domain/Store.h"

#include <algorithm>

namespace devicetidy {
namespace {

// Sums of well-mixed entry hashes: order-free, and an entry can be taken out again.
std::uint64_t entryHash(RootId root, std::uint64_t value) {
  std::uint64_t x = value ^ (static_cast<std::uint64_t>(root) * 0x9e3779b97f4a7c15ULL);
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

std::uint64_t marksOf(const Value &value) { return value ? value->marks : 0; }

} // namespace

/// One value that takes the place of another, on its way through a tree.
struct Store::Change {
  RootId root;
  Value value, old;         ///< either may be null
  std::uint64_t digest = 0; ///< by how much the digests above change

  std::uint64_t added() const { return marksOf(value); }
  std::uint64_t lost() const { return marksOf(old) & ~marksOf(value); }
};

Value Store::get(RootId root) const {
  const Tree &tree = treeOf(kindOf(root));
  const Node *node = tree.top.get();
  const RootId index = indexOf(root);
  unsigned level = tree.level;
  if (index >> (bits * level) >= fanout)
    return nullptr;
  for (; node && level > 0; --level)
    node = static_cast<const Inner *>(node)->children[(index >> (bits * level)) % fanout].get();
  return node ? static_cast<const Leaf *>(node)->values[index % fanout] : nullptr;
}

std::uint64_t Store::marks() const {
  std::uint64_t all = 0;
  for (const Tree &tree : trees)
    all |= tree.top ? tree.top->marks : 0;
  return all;
}

std::uint64_t Store::marksBelow(const Node &node, unsigned level) {
  std::uint64_t all = 0;
  if (level == 0)
    for (const Value &value : static_cast<const Leaf &>(node).values)
      all |= marksOf(value);
  else
    for (const NodePtr &child : static_cast<const Inner &>(node).children)
      all |= child ? child->marks : 0;
  return all;
}

void Store::assign(NodePtr &node, unsigned level, Change &change) {
  if (!node)
    node = level ? NodePtr(std::make_shared<Inner>()) : std::make_shared<Leaf>();
  else if (node.use_count() > 1) // another store shares it
    node = level ? NodePtr(std::make_shared<Inner>(static_cast<const Inner &>(*node)))
                 : std::make_shared<Leaf>(static_cast<const Leaf &>(*node));
  const RootId slot = (indexOf(change.root) >> (bits * level)) % fanout;
  if (level == 0) {
    Value &place = static_cast<Leaf &>(*node).values[slot];
    change.old = std::move(place);
    place = change.value;
    if (change.old)
      change.digest -= entryHash(change.root, change.old->hash);
    if (place)
      change.digest += entryHash(change.root, place->hash);
  } else {
    NodePtr &child = static_cast<Inner &>(*node).children[slot];
    assign(child, level - 1, change);
    if (child->count == 0)
      child.reset();
  }
  node->digest += change.digest;
  node->count += static_cast<std::uint32_t>(change.value != nullptr);
  node->count -= static_cast<std::uint32_t>(change.old != nullptr);
  node->marks = change.lost() ? marksBelow(*node, level) : node->marks | change.added();
}

void Store::set(RootId root, Value value) {
  if (!value && !get(root))
    return;
  Tree &tree = trees[static_cast<std::size_t>(kindOf(root))];
  while (indexOf(root) >> (bits * tree.level) >= fanout) {
    ++tree.level;
    if (!tree.top)
      continue;
    auto above = std::make_shared<Inner>();
    static_cast<Node &>(*above) = *tree.top;
    above->children[0] = std::move(tree.top);
    tree.top = std::move(above);
  }
  Change change{root, std::move(value), nullptr};
  assign(tree.top, tree.level, change);
  if (tree.top->count == 0)
    tree.top.reset();
  if (change.old)
    tree.placeDigest -= entryHash(root, change.old->placeHash);
  if (change.value)
    tree.placeDigest += entryHash(root, change.value->placeHash);
  const bool losesAddress = marks::include(marksOf(change.old), marks::address) &&
                            !(change.value && same(change.old, change.value));
  garbage |= losesAddress || (!change.old && kindOf(root) == RootKind::Heap);
}

std::uint64_t Store::digest() const {
  std::uint64_t sum = 0;
  for (const Tree &tree : trees)
    sum += tree.top ? tree.top->digest : 0;
  return sum;
}

std::uint64_t Store::placeDigest() const {
  std::uint64_t sum = 0;
  for (const Tree &tree : trees)
    sum += tree.placeDigest;
  return sum;
}

Store Store::with(RootKind kind, const Store &other) const {
  Store result = *this;
  result.trees[static_cast<std::size_t>(kind)] = other.treeOf(kind);
  return result;
}

Store Store::outer() const { return outside().with(RootKind::Global, *this); }
Store Store::outside() const { return Store().with(RootKind::Outside, *this); }

void Store::walk(const Node *node, unsigned level, RootId prefix, std::uint64_t wanted,
                 const Visitor &visit) {
  if (!node || !marks::include(node->marks, wanted))
    return;
  for (unsigned slot = 0; slot < fanout; ++slot) {
    const RootId next = prefix | slot << (bits * level);
    if (level > 0) {
      walk(static_cast<const Inner *>(node)->children[slot].get(), level - 1, next, wanted, visit);
    } else if (const Value &value = static_cast<const Leaf *>(node)->values[slot];
               value && marks::include(value->marks, wanted)) {
      visit(next, value);
    }
  }
}

void Store::forEach(RootKind kind, const Visitor &visit, std::uint64_t wanted) const {
  const Tree &tree = treeOf(kind);
  walk(tree.top.get(), tree.level, makeRoot(kind, 0), wanted, visit);
}

void Store::forEach(const Visitor &visit, std::uint64_t wanted) const {
  for (unsigned kind = 0; kind < rootKinds; ++kind)
    forEach(static_cast<RootKind>(kind), visit, wanted);
}

void Store::walkDifference(const Node *a, unsigned levelOfA, const Node *b, unsigned levelOfB, RootId prefix,
                           const DifferenceVisitor &visit) {
  if (a == b || (a && b && a->digest == b->digest))
    return;
  // A tree of fewer levels is the first child of a node above it.
  const unsigned level = std::max(a ? levelOfA : 0, b ? levelOfB : 0);
  auto childOf = [&](const Node *node, unsigned levelOfNode, unsigned slot) -> const Node * {
    if (!node || levelOfNode < level)
      return slot == 0 ? node : nullptr;
    return static_cast<const Inner *>(node)->children[slot].get();
  };
  static const Value none;
  auto valueOf = [](const Node *node, unsigned slot) -> const Value & {
    return node ? static_cast<const Leaf *>(node)->values[slot] : none;
  };
  for (unsigned slot = 0; slot < fanout; ++slot) {
    const RootId next = prefix | slot << (bits * level);
    if (level > 0) {
      walkDifference(childOf(a, levelOfA, slot), std::min(levelOfA, level - 1), childOf(b, levelOfB, slot),
                     std::min(levelOfB, level - 1), next, visit);
      continue;
    }
    const Value &va = valueOf(a, slot), &vb = valueOf(b, slot);
    if (va != vb && (!va || !vb || !same(va, vb)))
      visit(next, va, vb);
  }
}

void Store::forEachDifference(RootKind kind, const Store &a, const Store &b, const DifferenceVisitor &visit) {
  const Tree &ta = a.treeOf(kind), &tb = b.treeOf(kind);
  walkDifference(ta.top.get(), ta.level, tb.top.get(), tb.level, makeRoot(kind, 0), visit);
}

void Store::forEachDifference(const Store &a, const Store &b, const DifferenceVisitor &visit) {
  for (unsigned kind = 0; kind < rootKinds; ++kind)
    forEachDifference(static_cast<RootKind>(kind), a, b, visit);
}

} // namespace devicetidy
