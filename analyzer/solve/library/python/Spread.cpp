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
#include "analyzer/solve/library/python/Lists.h"
#include "analyzer/solve/library/torch/Modules.h"

namespace devicetidy::python {
namespace {

constexpr int nesting = 6;

// The GPU of something behind the first layers: which one depends on the sizes, and on how many there are.
Placement placeOf(const std::string &what, Term of) {
  Placement placement = Placement::cuda(applyTerm(op::back, {of}));
  placement.text = Name(what);
  return placement;
}

class Spreading {
public:
  Spreading(Call &call, Row &row) : call(call), machine(call.machine), row(row) {}

  // Places what is below `module`; true when there is a list of layers among it.
  bool place(const Address &module, int depth) {
    const Value record = machine.memory.read(row, module);
    bool isBehind = false;
    for (const Address &child : childrenOf(record)) {
      const Value held = machine.memory.read(row, child);
      if (const auto layers = held->fields.find(hidden::children);
          layers != held->fields.end() && is(layers->second, ValueKind::List)) {
        placeLayers(child, layers->second);
        isBehind = true;
      } else if (depth > 0 && place(child, depth - 1)) {
        isBehind = true;
      } else {
        move(child, isBehind ? placeOf("last", textTerm("the last layers")) : Placement::cuda(intTerm(0)));
      }
    }
    return isBehind;
  }

private:
  // Submodules in the order in which the class names them.
  std::vector<Address> childrenOf(const Value &record) const {
    std::vector<Address> children;
    const Type *type = machine.program.type(record->type);
    for (const Field &field : type ? type->fields : std::vector<Field>()) {
      const auto child = record->fields.find(Name(hidden::submodule(field.name)));
      if (child != record->fields.end() && is(child->second, ValueKind::Address))
        children.push_back(child->second->address);
    }
    return children;
  }

  void placeLayers(const Address &list, const Value &layers) {
    std::int64_t number = 0;
    forEachAddress(layers, [&](const Address &layer) {
      move(layer, placeOf("layer", applyTerm(op::element, {intTerm(list.root), intTerm(number)})));
      ++number;
    });
    mark(list, 0);
  }

  void move(const Address &module, const Placement &placement) {
    moveModule(machine, row, module, placement,
               machine.note(nullptr, StepKind::Chosen, call.fact.where, {}, placement.describe()));
    mark(module, nesting);
  }

  void mark(const Address &module, int depth) {
    machine.memory.write(row, module.field(spreadField), scalarValue(intTerm(1)));
    const Value record = machine.memory.read(row, module);
    for (const auto &[field, child] : record->fields)
      if (hidden::isSubmodule(field) && is(child, ValueKind::Address) && depth > 0)
        mark(child->address, depth - 1);
  }

  Call &call;
  Machine &machine;
  Row &row;
};

} // namespace

void spread(Call &call, Row &row, const Address &model) {
  if (!Spreading(call, row).place(model, nesting))
    moveModule(call.machine, row, model, Placement::unknown(), nullptr);
  call.machine.memory.write(row, model.field(spreadField), scalarValue(intTerm(1)));
}

void placeLayer(Call &call, Row &row, const Address &layer, const Term which) {
  const Placement placement = placeOf("layer", which);
  moveModule(call.machine, row, layer, placement,
             call.machine.note(nullptr, StepKind::Chosen, call.fact.where, {}, placement.describe()));
}

Given brought(Call &call, Row &row, const Address &module, const Given &given) {
  const Placement to = modulePlacement(call.machine, row, module);
  Given there = given;
  if (!to.isKnown())
    return there;
  for (Argument &each : there.positional)
    each.value = movedTo(call, row, each.value, to);
  for (auto &[name, each] : there.named)
    each.value = movedTo(call, row, each.value, to);
  return there;
}

} // namespace devicetidy::python
