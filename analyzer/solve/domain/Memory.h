//===- Memory.h - roots, and reading and writing through addresses -*- C++ -*-===//
//
// Roots are the things a store maps: local variables of active calls, heap objects, globals, and objects from
// outside the analysed code. Outside objects are lazy: nothing is stored until the code writes, and what was
// never written is computed from the access path that leads to it, so two reads of one path give one symbol.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/domain/DeviceChoices.h"
#include "analyzer/solve/domain/HiddenFields.h"
#include "analyzer/solve/domain/Row.h"
#include "analyzer/solve/domain/Types.h"

#include <array>
#include <tuple>
#include <unordered_map>

namespace devicetidy {

struct RootInfo {
  unsigned depth = 0; ///< Local: depth of the call
  Name type;
  Term origin = nullptr; ///< Outside, Global: access path
  Name text;             ///< how a user would name it
  Term site = nullptr;   ///< Heap: function, line, column and type of the fact that makes it
  bool isFlag = false;   ///< Global: says whether a static local was initialised; false before anything
};

/// What stands for the number of dimensions of a tensor that is as a caller has passed it; null for others.
Term dimensionsOf(const Value &tensor);

class Memory {
public:
  explicit Memory(const Types &types) : types(types) {}

  RootId local(unsigned depth, unsigned index, const Variable &variable);
  /// What the analysis keeps of the call at `depth` for itself, such as where a loop stands. No callee sees
  /// it.
  RootId noted(unsigned depth, Name what);
  /// The `copy`-th live object made at `site`.
  RootId heap(Term site, unsigned copy, Name type);
  RootId global(Name id, Name type, Name text);
  RootId outside(Term origin, Name type, Name text);
  const RootInfo &info(RootId root) const {
    static const RootInfo none;
    return root == noRoot ? none : roots[static_cast<std::size_t>(kindOf(root))][indexOf(root) - 1];
  }

  /// The type that the variable or field at `address` is declared with; empty where it is not known.
  Name typeAt(const Row &row, const Address &address) const;
  /// The value at `address`; never null.
  Value read(const Row &row, const Address &address) const;
  void write(Row &row, const Address &address, Value value) const;

  /// A value of `type` that is decided outside: `origin` is the access path, `text` how a user would name it.
  Value symbolic(Name type, Term origin, Name text, SymbolRole tensorRole = SymbolRole::Tensor);
  /// A pointer of `type` that a cast has made of `handle`: to the object that somebody outside keeps behind
  /// it, or, where the handle leads to something already, `handle` itself.
  Value behind(const Row &row, const Value &handle, Name type, Name text);
  /// Where a number from outside comes from; null for others.
  Term originOf(Term number) const;
  /// A value of `type` all of whose tensors are at `placement` (results of library calls).
  Value filled(Name type, const Placement &placement, int rank, const History &history) const;

  /// Placement of a tensor value: follows handles into their module, and what the row knows.
  Placement placementOf(const Row &row, const Value &tensor) const;
  /// The same without the answer of the row to the question what type of device that is: what is computed
  /// from the tensor is there whatever the answer is.
  Placement placementKept(const Row &row, const Value &tensor) const;
  History historyOf(const Row &row, const Value &tensor) const;
  /// Is it memory of the host that is page-locked, or may be?
  bool isPinned(const Row &row, const Value &tensor) const;
  bool mayBePinned(const Row &row, const Value &tensor) const;
  /// Is where the tensor lives up to the caller, whatever the code has asked about it since?
  bool isFromOutside(const Row &row, const Value &tensor) const;
  int rankOf(const Row &row, const Value &tensor) const;
  /// A tensor that stays as `tensor` is now, whatever becomes of the module it is a parameter of.
  Value snapshot(const Row &row, const Value &tensor) const;

  /// Drops heap objects that neither variables nor registers refer to; those in `callers` belong to a caller
  /// and stay.
  void collectGarbage(Row &row, const Store *callers) const;
  /// Drops the locals of calls at `depth` and deeper.
  void dropLocals(Row &row, unsigned depth) const;

  const Types &types;
  mutable DeviceChoices choices; ///< what is written to device slots

private:
  void noteChoices(const Row &row, const Address &address, const Value &value) const;
  /// What tells the roots of one kind apart: depth and index of a local, site and copy of a heap object, name
  /// of a global, origin of an outside object; and a name.
  using Key = std::tuple<std::uint64_t, std::uint64_t, Name>;
  struct KeyHash {
    std::size_t operator()(const Key &key) const;
  };
  RootId intern(RootKind kind, const Key &key, const std::function<RootInfo()> &info);
  Value rootValue(const Row &row, RootId root) const;
  /// What stands for a field of `record`, which comes from outside.
  Term memberOf(const Value &record, Name field) const;
  Value descend(const Value &value, Path node, const Address &whole) const;
  Value element(const Value &list, Term index) const;
  Value symbolicList(Name type, Term origin, Name text, SymbolRole tensorRole);
  bool isOfOpenArray(const Row &row, const Address &address, Path node, const Value &value) const;
  Value elementOutside(RootId root, Term index) const;
  Value replace(const Value &value, const std::vector<Path> &path, std::size_t depth,
                const Value &leaf) const;
  Value replaceElement(const Value &list, Term index,
                       const std::function<Value(const Value &)> &change) const;

  std::unordered_map<Term, Term> originsOfNumbers;
  std::array<std::vector<RootInfo>, rootKinds> roots;
  std::array<std::unordered_map<Key, RootId, KeyHash>, rootKinds> ids;
};

} // namespace devicetidy
