#include "analyzer/solve/library/std/Ownership.h"

#include "analyzer/solve/domain/NameParts.h"
#include "analyzer/solve/domain/Positions.h"
#include "analyzer/solve/library/std/Containers.h"

namespace devicetidy {
namespace {

// The places that hold the address of one object.
struct Holders {
  std::int64_t owners = 0;  ///< shared pointers
  bool mayBeOthers = false; ///< something that may be one more
};

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
  const Type *known = types.program.type(type);
  const std::string_view name = known ? known->templateName.view() : std::string_view();
  switch (value->kind) {
  case ValueKind::Unknown:
    holders.mayBeOthers |= canOwn(types, type, 0);
    return;
  case ValueKind::Address:
    if (!(value->address == object)) {
      holders.mayBeOthers |= leadsThrough(value->address, object) && name == "std::shared_ptr";
      return;
    }
    if (name == "std::shared_ptr")
      ++holders.owners;
    else if (name != "std::weak_ptr" && name != "std::reference_wrapper" &&
             !(known && known->kind == TypeKind::Pointer))
      holders.mayBeOthers = true;
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
Outcomes lock(Call &call, const Value &held) {
  const Term expired = call.machine.freshScalar(call);
  Outcomes outcomes;
  for (const bool isExpired : {false, true}) {
    Row row = call.row;
    if (row.assume(expired, isExpired))
      outcomes.push_back({std::move(row), isExpired ? nullValue() : held});
  }
  return outcomes;
}

} // namespace

Outcomes modelOwnership(Call &call, std::string_view method) {
  const Value held = call.object();
  if (is(held, ValueKind::Null))
    return call.done(method == "lock" ? nullValue() : scalarValue(intTerm(method == "expired")));
  if (!is(held, ValueKind::Address))
    return call.done(call.machine.unknownResult(call));
  const Holders holders = holdersOf(call, held->address);
  if (method == "use_count")
    return call.done(holders.mayBeOthers ? call.machine.unknownResult(call)
                                         : scalarValue(intTerm(holders.owners)));
  const bool isKnown = holders.owners > 0 || !holders.mayBeOthers;
  if (method == "expired")
    return call.done(isKnown ? scalarValue(intTerm(holders.owners == 0)) : call.machine.unknownResult(call));
  if (isKnown || kindOf(held->address.root) == RootKind::Outside)
    return call.done(isKnown && holders.owners == 0 ? nullValue() : held);
  return lock(call, held);
}

} // namespace devicetidy
