// The persistent store against std::map, on random operations.
#include "analyzer/solve/domain/Store.h"
#include "analyzer/solve/domain/Joins.h"

#include "gtest/gtest.h"

#include <map>
#include <random>
#include <set>

namespace devicetidy::test {
namespace {

using Random = std::mt19937_64;
using Contents = std::map<RootId, Value>;

std::size_t pick(Random &random, std::size_t count) {
  return std::uniform_int_distribution<std::size_t>(0, count - 1)(random);
}

// Near each other, far apart, and at the ends of the store's nodes.
RootId randomRoot(Random &random) {
  static const RootId far[] = {15, 16, 255, 256, 4095, 4096, 65535, 65536, 1u << 20, (1u << 27) + 3};
  return pick(random, 5) ? static_cast<RootId>(1 + pick(random, 60)) : far[pick(random, std::size(far))];
}

std::vector<Value> pool() {
  std::vector<Value> values = {unknownValue(), nullValue(), tensorValue(Placement::cpu(), 0, nullptr),
                               tensorValue(Placement::cpu(), someRank, nullptr),
                               tensorValue(Placement::cuda(intTerm(1)), 2, nullptr)};
  for (int i = 0; i < 4; ++i)
    values.push_back(scalarValue(intTerm(i))); // one place hash
  return values;
}

std::map<RootId, std::uint64_t> hashes(const Contents &contents, std::uint64_t ValueData::*hash) {
  std::map<RootId, std::uint64_t> result;
  for (const auto &[root, value] : contents)
    result[root] = value.get()->*hash;
  return result;
}

Contents contentsOf(const Store &store) {
  Contents result;
  RootId last = 0;
  store.forEach([&](RootId root, const Value &value) {
    EXPECT_GT(root, last) << "forEach goes in order";
    last = root;
    EXPECT_TRUE(result.emplace(root, value).second);
  });
  return result;
}

struct Pair {
  Store store;
  Contents contents;
};

void change(Random &random, const std::vector<Value> &values, Pair &pair) {
  const RootId root = randomRoot(random);
  if (pick(random, 3) == 0) {
    pair.store.erase(root);
    pair.contents.erase(root);
  } else {
    const Value &value = values[pick(random, values.size())];
    pair.store.set(root, value);
    pair.contents[root] = value;
  }
}

TEST(Store, IsAMap) {
  Random random(11);
  const std::vector<Value> values = pool();
  Pair pair;
  for (int i = 0; i < 10000; ++i) {
    change(random, values, pair);
    const RootId root = randomRoot(random);
    auto found = pair.contents.find(root);
    EXPECT_EQ(pair.store.get(root), found == pair.contents.end() ? nullptr : found->second);
    if (i % 100 == 0) {
      EXPECT_EQ(contentsOf(pair.store), pair.contents);
    }
  }
}

TEST(Store, CopiesDoNotSeeEachOthersChanges) {
  Random random(12);
  const std::vector<Value> values = pool();
  std::vector<Pair> pairs(8);
  for (int i = 0; i < 10000; ++i) {
    Pair &pair = pairs[pick(random, pairs.size())];
    if (pick(random, 50) == 0)
      pair = pairs[pick(random, pairs.size())];
    else
      change(random, values, pair);
  }
  for (const Pair &pair : pairs)
    EXPECT_EQ(contentsOf(pair.store), pair.contents);
}

// Few roots and values, so that equal contents come about on different ways.
TEST(Store, DigestsAreEqualIffContentsAre) {
  Random random(13);
  const std::vector<Value> values = pool();
  std::vector<Pair> pairs(12);
  int equal = 0, equalPlaces = 0;
  for (int i = 0; i < 10000; ++i) {
    Pair &pair = pairs[pick(random, pairs.size())];
    const RootId root = static_cast<RootId>(1 + pick(random, 2));
    const Value value = pick(random, 3) ? values[pick(random, values.size())] : nullptr;
    pair.store.set(root, value);
    if (value)
      pair.contents[root] = value;
    else
      pair.contents.erase(root);
    const Pair &other = pairs[pick(random, pairs.size())];
    const bool same = hashes(pair.contents, &ValueData::hash) == hashes(other.contents, &ValueData::hash);
    const bool samePlaces =
        hashes(pair.contents, &ValueData::placeHash) == hashes(other.contents, &ValueData::placeHash);
    EXPECT_EQ(pair.store.digest() == other.store.digest(), same);
    EXPECT_EQ(pair.store.placeDigest() == other.store.placeDigest(), samePlaces);
    equal += same && &pair != &other;
    equalPlaces += samePlaces && !same;
  }
  EXPECT_GT(equal, 50);
  EXPECT_GT(equalPlaces, 50);
}

TEST(Store, AnEmptiedStoreHasTheDigestOfAnEmptyOne) {
  Random random(14);
  const std::vector<Value> values = pool();
  Pair pair;
  for (int i = 0; i < 500; ++i)
    change(random, values, pair);
  for (const auto &[root, value] : pair.contents)
    pair.store.erase(root);
  EXPECT_EQ(pair.store.digest(), Store().digest());
  EXPECT_EQ(pair.store.placeDigest(), Store().placeDigest());
}

TEST(Store, DifferencesAreThoseOfTheMaps) {
  Random random(15);
  const std::vector<Value> values = pool();
  for (int iteration = 0; iteration < 200; ++iteration) {
    Pair a;
    for (int i = 0; i < 40; ++i)
      change(random, values, a);
    Pair b = a;
    for (std::size_t i = pick(random, 20); i > 0; --i)
      change(random, values, b);
    std::map<RootId, std::pair<Value, Value>> expected, found;
    for (const auto *contents : {&a.contents, &b.contents})
      for (const auto &[root, value] : *contents) {
        const Value va = a.contents.count(root) ? a.contents[root] : nullptr;
        const Value vb = b.contents.count(root) ? b.contents[root] : nullptr;
        if (!va || !vb || va->hash != vb->hash)
          expected[root] = {va, vb};
      }
    Store::forEachDifference(a.store, b.store,
                             [&](RootId root, const Value &va, const Value &vb) { found[root] = {va, vb}; });
    EXPECT_EQ(found, expected);
  }
}

TEST(Store, AWalkByMarksMissesNothing) {
  Random random(16);
  std::vector<Term> symbols;
  std::vector<Value> values = pool();
  for (int i = 0; i < 20; ++i) {
    symbols.push_back(symbolTerm(Name("symbol " + std::to_string(i))));
    values.push_back(scalarValue(applyTerm("+", {symbols.back(), intTerm(1)})));
    values.push_back(listValue({}, {tensorValue(Placement::cuda(symbols.back()), 1, nullptr)}));
  }
  Pair pair;
  for (int i = 0; i < 3000; ++i) {
    change(random, values, pair);
    const Term wanted = symbols[pick(random, symbols.size())];
    auto mentions = [&](const Value &value) { return substitute(value, wanted, intTerm(0)) != value; };
    std::set<RootId> expected, found;
    for (const auto &[root, value] : pair.contents)
      if (mentions(value))
        expected.insert(root);
    pair.store.forEach(
        [&](RootId root, const Value &value) {
          if (mentions(value))
            found.insert(root);
        },
        wanted->marks);
    ASSERT_EQ(found, expected);
  }
}

TEST(Store, OuterHasNoLocalsAndNoHeap) {
  Store store;
  const RootKind kinds[] = {RootKind::Local, RootKind::Heap, RootKind::Global, RootKind::Outside};
  for (RootKind kind : kinds)
    store.set(makeRoot(kind, 7), nullValue());
  Store expected;
  for (RootKind kind : {RootKind::Global, RootKind::Outside})
    expected.set(makeRoot(kind, 7), nullValue());
  EXPECT_EQ(store.outer().digest(), expected.digest());
  EXPECT_EQ(store.outer().placeDigest(), expected.placeDigest());
  EXPECT_EQ(store.outer().get(makeRoot(RootKind::Heap, 7)), nullptr);
  EXPECT_NE(store.get(makeRoot(RootKind::Heap, 7)), nullptr);
}

TEST(Store, OnlyNewObjectsAndLostAddressesMakeGarbage) {
  const RootId local = makeRoot(RootKind::Local, 1), heap = makeRoot(RootKind::Heap, 1);
  Store store;
  store.set(local, nullValue());
  EXPECT_FALSE(store.mayHoldGarbage());
  store.set(heap, nullValue());
  EXPECT_TRUE(store.mayHoldGarbage());
  store.noteCollected();
  store.set(heap, unknownValue());
  store.set(local, addressValue({heap, nullptr}));
  store.set(local, addressValue({heap, nullptr}));
  EXPECT_FALSE(store.mayHoldGarbage());
  store.erase(local);
  EXPECT_TRUE(store.mayHoldGarbage());
}

TEST(Join, WhatAbsorbsStaysAsItIs) {
  std::vector<Value> values = pool();
  for (int rank : {unknownRank, someRank, 0, 2})
    for (const Placement &placement : {Placement::unknown(), Placement::cpu()})
      for (std::int64_t count : {-1, 3})
        values.push_back(tensorValue(placement, rank, nullptr, count));
  values.push_back(parameterHandle({makeRoot(RootKind::Heap, 1), nullptr}));
  values.push_back(listValue({}, {}));
  const Term phi = symbolTerm("phi of the test");
  int absorbed = 0;
  for (const Value &a : values)
    for (const Value &b : values)
      if (absorbs(a, b)) {
        ++absorbed;
        EXPECT_TRUE(same(joinValues(a, b, phi), a));
      }
  EXPECT_GT(absorbed, 20);
}

} // namespace
} // namespace devicetidy::test
