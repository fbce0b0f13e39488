//===- Spread.cpp - models whose layers are on several devices ---===//
//
// accelerate's dispatch_model: what comes before the list of layers is on the first GPU, the layers are on
// one after the other, what comes behind is on the last. Each module gets what it is called with brought to
// its own device, so modules meet anything; operators do not.
//
//===----------------------------------------------------------------------===//
#include "analyzer/solve/library/python/Spread.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/HiddenFields.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/engine/ClassBodies.h"
#include "analyzer/solve/engine/Evidence.h"
#include "analyzer/solve/library/python/Lists.h"
#include "analyzer/solve/library/python/OpenValues.h"
#include "analyzer/solve/library/python/Words.h"
#include "analyzer/solve/library/torch/Modules.h"

#include <algorithm>
#include <set>

namespace devicetidy::python {
namespace {

constexpr int nesting = 6;

// The GPU of something behind the first layers: which one depends on the sizes, and on how many there are.
Placement placeOf(const std::string &what, Term of) {
  Placement placement = Placement::cuda(applyTerm(op::back, {of}));
  placement.text = Name(what);
  return placement;
}

// The same of a list of devices that somebody outside chooses.
Placement chosenPlace(const std::string &what, Term position) {
  return Placement::symbol(SymbolRole::DeviceChoice,
                           applyTerm(op::element, {textTerm(spreadDevices), position}), Name(what));
}

std::string className(Name type) {
  const std::string_view name = type.view();
  return std::string(name.substr(name.find_last_of(".:") + 1));
}

class Spreading {
public:
  Spreading(Machine &machine, Row &row, Location where, const std::set<std::string> &blocks, bool isChosen)
      : machine(machine), row(row), where(where), blocks(blocks), isChosen(isChosen) {}

  // Places what is in `module`; false when there is no list of layers among it. Which of several lists the
  // devices change in depends on their sizes, so what is between the first and the last one is anywhere.
  bool place(const Address &module) {
    std::vector<Part> parts;
    collect(module, parts, nesting);
    const auto isLayers = [](const Part &part) { return part.kind == Part::Layers; };
    const auto first = std::find_if(parts.begin(), parts.end(), isLayers);
    const auto last = std::find_if(parts.rbegin(), parts.rend(), isLayers);
    if (first == parts.end())
      return false;
    for (auto part = parts.begin(); part != parts.end(); ++part) {
      const bool isBefore = part < first, isBehind = part >= last.base();
      if (part->kind == Part::Layers && part + 1 == last.base())
        placeLayers(part->module);
      else
        put(*part, isBefore ? firstPlace() : isBehind ? lastPlace() : Placement::unknown());
    }
    return true;
  }

private:
  /// What stays on one device: a module, or the parameters that one has itself; or a list of layers.
  struct Part {
    enum { Whole, Own, Layers } kind;
    Address module;
  };

  // In the order in which a map places them; true when there is a list of layers among it.
  bool collect(const Address &module, std::vector<Part> &parts, int depth) const {
    const Value record = machine.memory.read(row, module);
    parts.push_back({Part::Own, module});
    bool hasLayers = false;
    for (const Address &child : childrenOf(record)) {
      const Value held = machine.memory.read(row, child);
      const auto layers = held->fields.find(hidden::children);
      std::vector<Part> inner;
      if (layers != held->fields.end() && is(layers->second, ValueKind::List) &&
          (blocks.empty() || holdsBlock(held, nesting)))
        inner = {{Part::Layers, child}};
      else if (depth == 0 || blocks.count(className(held->type)) || !collect(child, inner, depth - 1))
        inner = {{Part::Whole, child}};
      hasLayers |= inner.front().kind != Part::Whole;
      parts.insert(parts.end(), inner.begin(), inner.end());
    }
    return hasLayers;
  }

  void put(const Part &part, const Placement &placement) {
    if (part.kind == Part::Own)
      placeOwn(part.module, placement);
    else
      move(part.module, placement);
  }

  Placement firstPlace() const {
    return isChosen ? chosenPlace("the first GPU", intTerm(0)) : Placement::cuda(intTerm(0));
  }

  Placement lastPlace() const {
    const Term last = textTerm("the last layers");
    return isChosen ? chosenPlace("the last GPU", applyTerm(op::back, {last})) : placeOf("last", last);
  }

  // Submodules in the order in which the classes name them: a constructor calls that behind it first.
  std::vector<Address> childrenOf(const Value &record) const {
    std::vector<Address> children;
    const std::vector<Name> &order = machine.types.lookupOrder(record->type);
    for (auto type = order.rbegin(); type != order.rend(); ++type)
      if (const Type *known = machine.program.type(*type))
        addChildren(record, known->fields, children);
    return children;
  }

  static void addChildren(const Value &record, const std::vector<Field> &fields,
                          std::vector<Address> &children) {
    for (const Field &field : fields) {
      const auto child = record->fields.find(Name(hidden::submodule(field.name)));
      if (child != record->fields.end() && is(child->second, ValueKind::Address) &&
          std::find(children.begin(), children.end(), child->second->address) == children.end())
        children.push_back(child->second->address);
    }
  }

  // Parameters come before all else in a module, buffers behind: these are anywhere.
  void placeOwn(const Address &module, const Placement &placement) {
    const Value record = machine.memory.read(row, module);
    for (const auto &[field, value] : record->fields)
      if (hidden::isParameter(field) && field != hidden::parameters && is(value, ValueKind::Tensor)) {
        const std::string_view name = field.view().substr(hidden::parameter({}).size());
        const bool isBuffer = record->fields.count(Name(bufferMark + std::string(name))) != 0;
        const Placement there = isBuffer ? Placement::unknown() : placement;
        machine.memory.write(row, module.field(field), tensorValue(there, value->rank, noteOf(there)));
      }
  }

  // Is it one of the modules that stay whole, or around one?
  bool holdsBlock(const Value &record, int depth) const {
    if (!is(record, ValueKind::Record))
      return false;
    bool holds = blocks.count(className(record->type)) != 0;
    for (const auto &[field, child] : record->fields)
      if ((hidden::isSubmodule(field) || field == hidden::children) && depth > 0)
        forEachAddress(child, [&](const Address &inner) {
          holds = holds || holdsBlock(machine.memory.read(row, inner), depth - 1);
        });
    return holds;
  }

  void placeLayers(const Address &list) {
    std::int64_t number = 0;
    forEachAddress(machine.memory.read(row, list)->fields.at(hidden::children), [&](const Address &layer) {
      const Term which = applyTerm(op::element, {intTerm(list.root), intTerm(number)});
      move(layer, isChosen ? chosenPlace("the GPU of a later layer", applyTerm(op::back, {which}))
                           : placeOf("layer", which));
      ++number;
    });
    mark(list, 0);
  }

  History noteOf(const Placement &placement) const {
    return machine.note(nullptr, StepKind::Chosen, where, {}, placement.describe());
  }

  void move(const Address &module, const Placement &placement) {
    moveModule(machine, row, module, placement, noteOf(placement));
    mark(module, nesting);
  }

  void mark(const Address &module, int depth) {
    machine.memory.write(row, module.field(spreadField), scalarValue(intTerm(1)));
    const Value record = machine.memory.read(row, module);
    for (const auto &[field, child] : record->fields)
      if (hidden::isSubmodule(field) && is(child, ValueKind::Address) && depth > 0)
        mark(child->address, depth - 1);
  }

  Machine &machine;
  Row &row;
  const Location where;
  const std::set<std::string> &blocks; ///< classes whose modules stay whole; none: of any list of layers
  const bool isChosen;                 ///< over devices that somebody outside chooses
};

// The classes whose modules stay whole; none where the class says nothing of them.
std::set<std::string> blocksOf(Machine &machine, const Row &row, Name type) {
  static const Name attribute("_no_split_modules");
  std::set<std::string> names;
  const Value listed = attributeOfClass(machine, row, type, attribute);
  if (listed && is(listed, ValueKind::List))
    for (const Value &each : listed->elements)
      if (is(each, ValueKind::Scalar) && each->term->kind == TermKind::Text)
        names.insert(each->term->name.str());
  return names;
}

// A value of which nothing is known was brought, too.
Value withoutOpen(const Value &value) {
  if (isOpen(value))
    return unknownValue();
  if (!is(value, ValueKind::List))
    return value;
  ValueData data = *value;
  for (auto *parts : {&data.elements, &data.summary})
    for (Value &each : *parts)
      each = withoutOpen(each);
  return makeValue(std::move(data));
}

} // namespace

void spread(Call &call, Row &row, const Address &model) {
  Machine &machine = call.machine;
  const std::set<std::string> blocks = blocksOf(machine, row, machine.memory.read(row, model)->type);
  if (!Spreading(machine, row, call.fact.where, blocks, false).place(model))
    moveModule(machine, row, model, Placement::unknown(), nullptr);
  machine.memory.write(row, model.field(spreadField), scalarValue(intTerm(1)));
}

bool spreadOverMap(Machine &machine, Row &row, const Address &model) {
  const Name type = machine.memory.info(model.root).type;
  const std::set<std::string> blocks = blocksOf(machine, row, type);
  const Type *known = machine.program.type(type);
  return !blocks.empty() && Spreading(machine, row, known->where, blocks, true).place(model);
}

void placeLayer(Call &call, Row &row, const Address &layer, const Term which) {
  const Placement placement = placeOf("layer", which);
  moveModule(call.machine, row, layer, placement,
             call.machine.note(nullptr, StepKind::Chosen, call.fact.where, {}, placement.describe()));
}

Given brought(Call &call, Row &row, const Address &module, const Given &given) {
  const Value moved = movedDevice(call.machine, row, module); // not all that is in it is known one by one
  const Placement to = moved ? moved->placement : modulePlacement(call.machine, row, module);
  Given there = given;
  if (!moved && !to.isKnown())
    return there;
  for (Argument &each : there.positional)
    each.value = withoutOpen(movedTo(call, row, each.value, to));
  for (auto &[name, each] : there.named)
    each.value = withoutOpen(movedTo(call, row, each.value, to));
  return there;
}

} // namespace devicetidy::python
