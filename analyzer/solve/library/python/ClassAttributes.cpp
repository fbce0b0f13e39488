//===- ClassAttributes.cpp - what a class has, for all its objects ---*- C++ -*-===//
//
// A class has what its body assigns, until somebody assigns it anew: Class.attribute = value. Lists and
// dictionaries are the same for all who ask the class.
//
//===----------------------------------------------------------------------===//
#include "analyzer/solve/library/python/Lists.h"
#include "analyzer/solve/library/python/Python.h"

namespace devicetidy::python {

namespace {

// Where the attributes are kept that were assigned after the body was run.
Address assignedTo(Machine &machine, Name type) {
  return {machine.memory.global(Name("@class " + type.str()), {}, {}), nullptr};
}

// The class that `type` has the attribute of, itself or one behind it.
Name ownerOf(Machine &machine, const Row &row, Name type, Name attribute) {
  Name owner = type;
  for (const Name each : machine.types.lookupOrder(type))
    if (attributeOfClass(machine, row, each, attribute))
      owner = each;
  return owner;
}

} // namespace

bool isOfClass(Machine &machine, const Row &row, const Value &object, Name attribute) {
  const auto own = object->fields.find(attribute);
  if (own == object->fields.end())
    return true;
  const Value held =
      is(own->second, ValueKind::Address) ? machine.memory.read(row, own->second->address) : own->second;
  const Value first = attributeOfClass(machine, row, object->type, attribute);
  return first && same(held, first);
}

void assignToClass(Machine &machine, Row &row, Name type, Name attribute, const Value &value) {
  const Address to = assignedTo(machine, type);
  if (!row.store.get(to.root))
    row.store.set(to.root, recordValue({}));
  machine.memory.write(row, to.field(attribute), value);
}

Value assignedAttribute(Machine &machine, const Row &row, Name type, Name attribute) {
  for (const Name each : machine.types.lookupOrder(type)) {
    const Value assigned = row.store.get(assignedTo(machine, each).root);
    if (assigned && assigned->fields.count(attribute))
      return assigned->fields.at(attribute);
  }
  return nullptr;
}

Value attributeNow(Machine &machine, Row &row, Name type, Name attribute) {
  if (const Value assigned = assignedAttribute(machine, row, type, attribute))
    return assigned;
  Value first = attributeOfClass(machine, row, type, attribute);
  const bool isFilledElsewhere = findMethod(machine, type, "__init_subclass__"); // which nobody calls here
  if (!first || isFilledElsewhere || (!isDict(first) && !is(first, ValueKind::List)))
    return first;
  const Name owner = ownerOf(machine, row, type, attribute);
  const Name id("@class " + owner.str() + "." + attribute.str());
  const Address shared{machine.memory.global(id, {}, {}), nullptr};
  row.store.set(shared.root, first);
  assignToClass(machine, row, owner, attribute, addressValue(shared));
  return addressValue(shared);
}

} // namespace devicetidy::python
