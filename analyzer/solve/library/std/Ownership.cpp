//===- Ownership.cpp - who keeps an object alive ---===//
//
// expired() and lock() of a weak pointer, use_count() of a shared one: what the pointers that can be seen
// say, unknown where there may be others.
//
//===----------------------------------------------------------------------===//
#include "analyzer/models/Models.h"
#include "analyzer/solve/domain/Positions.h"
#include "analyzer/solve/library/std/Words.h"

#include <map>
#include <set>

namespace devicetidy {
namespace {

// The places that hold the address of one object.
struct Holders {
  std::int64_t owners = 0;                                    ///< shared pointers
  bool mayBeOthers = false;                                   ///< something that may be one more
  bool isKnown() const { return owners > 0 || !mayBeOthers; } ///< whether the object lives
};

// What a class of pointers does for its object: it shares it, or it only looks at it.
enum class Ownership { Other, Shared, None };

Ownership ownershipOf(const Types &types, Name type) {
  static const std::map<std::string_view, Ownership> kinds = {{"shared", Ownership::Shared},
                                                              {"none", Ownership::None}};
  const Type *known = types.program.type(type);
  if (known && known->kind == TypeKind::Pointer)
    return Ownership::None;
  const models::Effect *said = models::effect(types.templateOf(type).view(), "ownership");
  const auto kind = said ? kinds.find(said->detail()) : kinds.end();
  return kind == kinds.end() ? Ownership::Other : kind->second;
}

// Can an object of `type` be a shared pointer, or hold one?
bool canOwn(const Types &types, Name type, int depth) {
  switch (types.classOf(type)) {
  case TypeClass::Tensor:
  case TypeClass::Device:
  case TypeClass::Options:
  case TypeClass::Scalar:
  case TypeClass::String:
  case TypeClass::Nothing:
    return false;
  case TypeClass::List:
  case TypeClass::Map:
  case TypeClass::Optional:
    return depth > 4 || types.inner(type).empty() || canOwn(types, types.inner(type), depth + 1);
  default:
    return true;
  }
}

// Looks through `value`, of `type` where that is known.
void look(const Types &types, Name type, const Value &value, const Address &object, Holders &holders) {
  const Ownership ownership = ownershipOf(types, type);
  switch (value->kind) {
  case ValueKind::Unknown:
    holders.mayBeOthers |= canOwn(types, type, 0);
    return;
  case ValueKind::Address:
    if (!(value->address == object)) {
      holders.mayBeOthers |= leadsThrough(value->address, object) && ownership == Ownership::Shared;
      return;
    }
    holders.owners += ownership == Ownership::Shared;
    holders.mayBeOthers |= ownership == Ownership::Other;
    return;
  case ValueKind::List:
    for (const Value &element : value->elements)
      look(types, types.inner(type), element, object, holders);
    for (const Value &element : value->summary) {
      Holders one;
      look(types, types.inner(type), element, object, one);
      holders.mayBeOthers |= one.mayBeOthers || one.owners > 0;
    }
    return;
  case ValueKind::Record:
  case ValueKind::Function:
    for (const auto &[field, held] : value->fields)
      look(types, types.fieldType(type, field), held, object, holders);
    return;
  default:
    return;
  }
}

// The variables, and what they lead to.
std::set<RootId> reachedRoots(const Row &row) {
  std::set<RootId> reached;
  std::vector<Value> work;
  row.store.forEach([&](RootId root, const Value &value) {
    if (kindOf(root) != RootKind::Heap && reached.insert(root).second)
      work.push_back(value);
  });
  while (!work.empty()) {
    const Value value = std::move(work.back());
    work.pop_back();
    forEachAddress(value, [&](const Address &address) {
      if (const Value next = row.store.get(address.root); next && reached.insert(address.root).second)
        work.push_back(next);
    });
  }
  return reached;
}

Holders holdersOf(const Call &call, const Address &object) {
  const Machine &machine = call.machine;
  const std::set<RootId> reached = reachedRoots(call.row);
  Holders holders;
  call.row.store.forEach([&](RootId root, const Value &value) {
    Holders one;
    look(machine.types, machine.memory.info(root).type, value, object, one);
    const bool isAlive = reached.count(root) != 0; // else it may have ended
    holders.owners += isAlive ? one.owners : 0;
    holders.mayBeOthers |= one.mayBeOthers || (!isAlive && one.owners > 0);
  });
  // The callers' variables cannot be seen from here.
  const bool isFromCaller = call.frame.entry && call.frame.entry->get(object.root);
  holders.mayBeOthers |= isFromCaller || kindOf(object.root) != RootKind::Heap || object.path;
  return holders;
}

// A pointer to the object, or null where it has ended.
Outcomes lockOrEnd(Call &call, const Value &held) {
  const Term expired = call.machine.freshScalar(call);
  Outcomes outcomes;
  for (const bool isExpired : {false, true}) {
    Row row = call.row;
    if (row.assume(expired, isExpired))
      outcomes.push_back({std::move(row), isExpired ? nullValue() : held});
  }
  return outcomes;
}

// What the pointers that can be seen say of the object at `held`; nothing when it is not known which one it
// is.
std::optional<Holders> holdersOf(const Call &call) {
  const Value held = call.object();
  if (is(held, ValueKind::Null))
    return Holders();
  return is(held, ValueKind::Address) ? std::optional(holdersOf(call, held->address)) : std::nullopt;
}

Outcomes numberOrUnknown(Call &call, bool isKnown, std::int64_t number) {
  return call.done(isKnown ? scalarValue(intTerm(number)) : call.machine.unknownResult(call));
}

std::optional<Outcomes> useCount(Call &call, const models::Effect &) {
  const auto holders = holdersOf(call);
  return numberOrUnknown(call, holders && !holders->mayBeOthers, holders ? holders->owners : 0);
}

std::optional<Outcomes> expired(Call &call, const models::Effect &) {
  const auto holders = holdersOf(call);
  return numberOrUnknown(call, holders && holders->isKnown(), holders && holders->owners == 0);
}

std::optional<Outcomes> lock(Call &call, const models::Effect &) {
  const Value held = call.object();
  const auto holders = holdersOf(call);
  if (!holders)
    return call.done(call.machine.unknownResult(call));
  if (holders->isKnown())
    return call.done(holders->owners == 0 ? nullValue() : held);
  return kindOf(held->address.root) == RootKind::Outside ? call.done(held) : lockOrEnd(call, held);
}

} // namespace

Words ownershipWords() { return {{{"use_count", useCount}, {"expired", expired}, {"lock", lock}}, {}, {}}; }

} // namespace devicetidy
