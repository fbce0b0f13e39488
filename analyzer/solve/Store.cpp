#include "analyzer/solve/Store.h"

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

} // namespace

Value Store::get(RootId root) const {
  const Node *node = top.get();
  for (unsigned level = levels; node; --level) {
    const unsigned slot = (root >> (bits * level)) & (fanout - 1);
    if (level == 0)
      return node->values[slot];
    node = node->children[slot].get();
  }
  return nullptr;
}

Store::NodePtr Store::assign(const NodePtr &node, unsigned level, RootId root, const Value &value,
                             Value &old) {
  auto copy = node ? std::make_shared<Node>(*node) : std::make_shared<Node>();
  const unsigned slot = (root >> (bits * level)) & (fanout - 1);
  if (level == 0) {
    old = copy->values[slot];
    copy->values[slot] = value;
  } else {
    copy->children[slot] = assign(copy->children[slot], level - 1, root, value, old);
  }
  return copy;
}

void Store::set(RootId root, Value value) {
  Value old;
  if (!value && !get(root))
    return;
  top = assign(top, levels, root, value, old);
  if (old) {
    digestSum -= entryHash(root, old->hash);
    placeSum -= entryHash(root, old->placeHash);
  }
  if (value) {
    digestSum += entryHash(root, value->hash);
    placeSum += entryHash(root, value->placeHash);
  }
}

void Store::walk(const NodePtr &node, unsigned level, RootId prefix,
                 const std::function<void(RootId, const Value &)> &visit) {
  if (!node)
    return;
  for (unsigned slot = 0; slot < fanout; ++slot) {
    const RootId next = (prefix << bits) | slot;
    if (level == 0) {
      if (node->values[slot])
        visit(next, node->values[slot]);
    } else {
      walk(node->children[slot], level - 1, next, visit);
    }
  }
}

void Store::forEach(const std::function<void(RootId, const Value &)> &visit) const {
  walk(top, levels, 0, visit);
}

void Store::walkDifference(const NodePtr &a, const NodePtr &b, unsigned level, RootId prefix,
                           const std::function<void(RootId, const Value &, const Value &)> &visit) {
  if (a == b)
    return;
  for (unsigned slot = 0; slot < fanout; ++slot) {
    const RootId next = (prefix << bits) | slot;
    if (level == 0) {
      const Value va = a ? a->values[slot] : nullptr, vb = b ? b->values[slot] : nullptr;
      if (va != vb && (!va || !vb || !same(va, vb)))
        visit(next, va, vb);
    } else {
      walkDifference(a ? a->children[slot] : nullptr, b ? b->children[slot] : nullptr, level - 1, next,
                     visit);
    }
  }
}

void Store::forEachDifference(const Store &a, const Store &b,
                              const std::function<void(RootId, const Value &, const Value &)> &visit) {
  walkDifference(a.top, b.top, levels, 0, visit);
}

} // namespace devicetidy
