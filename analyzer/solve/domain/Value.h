//===- Value.h - what a variable can hold -----------------------*- C++ -*-===//
//
// Immutable values with structural hashes. A tensor is a value (its placement and rank), not an identity: `a
// = b` copies the value, `x.to(d)` makes another. The one exception is a parameter of a module, which moves
// with its module: such a tensor is a handle on the cell of the module that holds it (Value::cell).
//
// Histories hang on values but are no part of their identity: equal placements reached on
// two ways are equal values.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/domain/Bounds.h"
#include "analyzer/solve/domain/Placement.h"
#include "analyzer/solve/solution/Step.h"

#include <map>
#include <memory>
#include <vector>

namespace devicetidy {

/// One step of a history with what came before it.
struct Event {
  Step step;
  std::shared_ptr<const Event> before;
  std::uint32_t length = 1;
  bool isOfResult = false; ///< an operation has made a tensor there since
};
using History = std::shared_ptr<const Event>;

constexpr std::uint32_t maxHistory = 12;
/// `before` extended by `step`; the middle of a history over maxHistory is dropped, its origin stays.
History extend(History before, Step step);
std::vector<Step> steps(const History &history);
/// The history of what an operation makes of a tensor with `history`, on the same device.
History ofResult(const History &history);
/// The oldest step that decided the device (creation or the last move).
const Step *decidingStep(const History &history);

/// What a store maps to a value: a variable or an object. Two bits say its kind, the others number the roots
/// of that kind from 1.
using RootId = std::uint32_t;
constexpr RootId noRoot = 0;
enum class RootKind : std::uint8_t { Local, Heap, Global, Outside };
constexpr unsigned rootKinds = 4, rootIndexBits = 30;
constexpr RootId makeRoot(RootKind kind, RootId index) {
  return static_cast<RootId>(kind) << rootIndexBits | index;
}
constexpr RootKind kindOf(RootId root) { return static_cast<RootKind>(root >> rootIndexBits); }
constexpr RootId indexOf(RootId root) { return root & ((RootId(1) << rootIndexBits) - 1); }

/// Where in a root's value: a field name or a list index, linked towards the root. Hash-consed.
struct PathNode {
  const PathNode *parent = nullptr;
  Name field;
  Term index = nullptr; ///< set: element of a list
  std::uint64_t hash = 0;
  std::uint64_t marks = 0; ///< of the indices on the way
};
using Path = const PathNode *;
Path fieldPath(Path parent, Name field);
Path elementPath(Path parent, Term index);
/// `suffix` below `prefix`.
Path appendPath(Path prefix, Path suffix);

struct Address {
  RootId root = noRoot;
  Path path = nullptr;
  bool valid() const { return root != noRoot; }
  Address field(Name name) const { return {root, fieldPath(path, name)}; }
  Address element(Term index) const { return {root, elementPath(path, index)}; }
  friend bool operator==(const Address &a, const Address &b) { return a.root == b.root && a.path == b.path; }
  friend bool operator<(const Address &a, const Address &b) {
    return a.root != b.root ? a.root < b.root : a.path < b.path;
  }
};

enum class ValueKind : std::uint8_t {
  Unknown,
  Null,     ///< nullptr, nullopt, undefined tensor, empty holder
  Scalar,   ///< `term`
  Device,   ///< `placement`: a c10::Device or DeviceType; hasDevice: it was made with an index
  Options,  ///< TensorOptions: `placement` when hasDevice
  Tensor,   ///< `placement`, `rank`; or a handle on `address`
  Address,  ///< pointer, reference, smart pointer, module holder
  Record,   ///< `type`, `fields`; missing fields follow from `origin` when it is set
  List,     ///< `elements` and/or `summary`
  Function, ///< `function` with captured `fields`
};

/// Number of dimensions: 0.., or one of these.
constexpr int unknownRank = -1;
constexpr int someRank = -2; ///< at least one dimension
constexpr int partRank = -3; ///< unknown, and less than that of the tensor that it is a part of
inline bool isOpenRank(int rank) { return rank == unknownRank || rank == partRank; }

struct ValueData;
using Value = std::shared_ptr<const ValueData>;

struct ValueData {
  ValueKind kind = ValueKind::Unknown;
  bool hasDevice = false;
  bool pinned = false; ///< Options: of page-locked memory; Device: a tensor has said it
  int rank = unknownRank;
  std::int64_t count = -1; ///< Tensor: number of elements, -1 when not known
  Term term = nullptr;     ///< Scalar: the number or text; Unknown: what tells it from others; List: the
                           ///< iteration whose element is the last alternative
  Placement placement;
  Address address;
  Name type;             ///< Record: dynamic class; List: canonical type, may be empty; Function: its name
                         ///< when it is the library's; Unknown: that of its entries
  Term origin = nullptr; ///< Record, List: symbolic; names the access path from outside
  std::map<Name, Value> fields;
  std::vector<Value> elements; ///< List: the elements when their number is known
  std::vector<Value>
      summary; ///< List: alternatives of any element, over elementIndex(); empty: number is known
  Name function;
  History history;

  std::uint64_t hash = 0;      ///< identity, histories left out
  std::uint64_t placeHash = 0; ///< the same with all scalars taken as equal
  std::uint64_t deviceHash =
      0;                   ///< of the tensors and devices in it, in whatever number; 0 when there are none
  std::uint64_t marks = 0; ///< of everything in it (marks, Term.h)
};

Value makeValue(ValueData data);

Value unknownValue();
/// What a caller has passed whose type nobody says: known by where it comes from, so that it is one value
/// wherever it is read. `rank`: of a tensor that is made of it, where it is said to be a number or numbers.
/// `holds`: the type of its entries, where somebody says that.
Value openValue(Term origin, Name text, int rank = unknownRank, Name holds = {});
/// What is not known, but can be told from other values that are not.
Value withIdentity(Term identity);
/// The object at `object` or what it holds, it is not known which: what is found in it under the name `name`,
/// where that is told from others.
Value somePartOf(const Address &object, Term name = nullptr);
bool isSomePart(const Value &value);
Value nullValue();
Value scalarValue(Term term);
Value deviceValue(Placement placement, History history = nullptr);
Value optionsValue(const Placement *placement, History history = nullptr, bool pinned = false);
Value tensorValue(Placement placement, int rank, History history, std::int64_t count = -1);
Value parameterHandle(Address cell, int rank = someRank);
Value addressValue(Address address);
Value recordValue(Name type, std::map<Name, Value> fields = {}, Term origin = nullptr);
Value listValue(Name type, std::vector<Value> elements);
/// A list of unknown length whose elements are among `alternatives`; they may be anything when there are more
/// than `limit`.
Value summaryList(Name type, std::vector<Value> alternatives, std::size_t limit = bounds::listAlternatives);
Value functionValue(Name function, std::map<Name, Value> captures);
/// A library function used as a value, known by its qualified name.
Value libraryFunction(Name name);

Value withField(const Value &record, Name field, Value value);
Value withHistory(const Value &value, History history);

/// A digest of the places where the devices of the tensors in `value` were decided, which `hash` leaves out.
std::uint64_t originsIn(const Value &value);

inline bool same(const Value &a, const Value &b) { return a == b || a->hash == b->hash; }
inline bool is(const Value &value, ValueKind kind) { return value->kind == kind; }
inline bool isOpen(const Value &value) { return is(value, ValueKind::Unknown) && value->origin; }
inline bool isSummary(const Value &list) { return !list->summary.empty(); }

/// Does `part` occur in a term of `value`: of a number, a placement, an address or an origin?
bool mentions(const Value &value, Term part);

/// `value` with every term rewritten by `rewrite` (terms in scalars, placements, addresses and origins),
/// which changes no term without all of `wanted` among its marks.
using TermRewrite = std::function<Term(Term)>;
Value rewriteTerms(const Value &value, const TermRewrite &rewrite, std::uint64_t wanted);
/// The same for its numbers, and for what it is told by where nothing else is known.
Value rewriteScalars(const Value &value, const TermRewrite &rewrite, std::uint64_t wanted);
/// `value` with every `from` in its terms replaced by `to`.
Value substitute(const Value &value, Term from, Term to);
/// `value` with addresses replaced.
using AddressRewrite = std::function<Address(const Address &)>;
Value rewriteAddresses(const Value &value, const AddressRewrite &rewrite);

/// The summary of `old` with `element` added as the one of iteration `iteration` (its last alternative).
Value withElementOfIteration(const Value &old, Value element, Term iteration);
/// Is the last alternative of `list` its element at `index`?
inline bool isOfThisIteration(const Value &list, Term index) {
  return isSummary(list) && list->term && list->term == index;
}
/// The term that an iteration has when the next one begins.
Term previousIteration(Term iteration);
/// `value` with no list's last alternative standing for an iteration: its loop is over.
Value endIterations(const Value &value);

/// `value` with the iterations of loops taken as the index of a list's element.
Value generalise(const Value &value);

/// Calls `visit` on every address in `value`.
void forEachAddress(const Value &value, const std::function<void(const Address &)> &visit);

} // namespace devicetidy
