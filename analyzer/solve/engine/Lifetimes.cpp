//===- Lifetimes.cpp - what happens when objects end -----------------------===//
#include "analyzer/solve/domain/HiddenFields.h"
#include "analyzer/solve/engine/Library.h"

#include <algorithm>

namespace devicetidy {
namespace {

// Does `block` return the value of local `index`?
bool returnsLocal(const Block &block, std::size_t index) {
  Reg reg = block.terminator.kind == TerminatorKind::Return ? block.terminator.value.reg : NoReg;
  for (auto fact = block.facts.rbegin(); reg != NoReg && fact != block.facts.rend(); ++fact) {
    if (fact->result != reg)
      continue;
    if (fact->kind == FactKind::Local)
      return static_cast<std::size_t>(fact->number) == index;
    reg = fact->kind == FactKind::Load ? fact->operands[0].reg : NoReg;
  }
  return false;
}

// The destructor to run at the end of a local's life. What a function returns lives on.
const Function *destructorOf(const Machine &machine, const Function &function, std::size_t index) {
  const Variable &local = function.locals[index];
  const Type *record = local.isReference ? nullptr : machine.program.type(local.type);
  if (!record || !record->isProject)
    return nullptr;
  const Function *found = nullptr;
  for (Name id : record->methods)
    if (const Function *method = machine.program.function(id))
      if (method->isDestructor && method->hasBody)
        found = method;
  const bool isReturned =
      found && std::any_of(function.blocks.begin(), function.blocks.end(),
                           [&](const Block &block) { return returnsLocal(block, index); });
  return isReturned ? nullptr : found;
}

// Does the class keep its object alive alone, so that the object ends with it?
bool ownsAlone(const Type *known) {
  static constexpr std::string_view alone = "alone";
  const models::Effect *said = known ? models::effect(known->templateName.view(), "ownership") : nullptr;
  return said && said->detail() == alone;
}

// The class of the deleter that a local unique_ptr, which is not returned, was given; empty when there is
// none, or one that does nothing but delete.
Name deleterOf(const Machine &machine, const Function &function, std::size_t index) {
  const Variable &local = function.locals[index];
  const Type *pointer = local.isReference ? nullptr : machine.program.type(local.type);
  if (!pointer || pointer->args.size() < 2 || !ownsAlone(pointer))
    return {};
  const Type *deleter = machine.program.type(pointer->args[1]);
  const bool isReturned = std::any_of(function.blocks.begin(), function.blocks.end(),
                                      [&](const Block &block) { return returnsLocal(block, index); });
  const bool onlyDeletes = !deleter || models::effect(deleter->templateName.view(), "only_deletes");
  return isReturned || onlyDeletes ? Name() : pointer->args[1];
}

} // namespace

// Runs the deleter of a unique_ptr that ends; what one that is not known does with the object is not known.
std::vector<Row> Machine::runDeleter(Frame &frame, const Fact &fact, Row row, Name deleter,
                                     const Value &pointer) {
  const Function *body = types.isProject(deleter) ? findMethod(*this, deleter, "operator()") : nullptr;
  std::vector<Row> rows;
  if (body && body->hasBody && !body->isLambda) {
    const Address self = allocate(row, frame, fact, deleter);
    for (Outcome &outcome : invoke(frame, fact, std::move(row), *body, self, {pointer}))
      rows.push_back(std::move(outcome.row));
    return rows;
  }
  memory.write(row, pointer->address, unknownValue());
  rows.push_back(std::move(row));
  return rows;
}

std::vector<Row> Machine::endScope(Frame &frame, const Fact &fact, Row row) {
  const auto index = static_cast<std::size_t>(fact.number);
  const Variable &local = frame.function.locals[index];
  const RootId root = memory.local(frame.depth, static_cast<unsigned>(index), local);
  std::vector<Row> rows;
  const Value value = row.store.get(root);
  const Function *destructor = value ? destructorOf(*this, frame.function, index) : nullptr;
  if (destructor)
    for (Outcome &outcome : invoke(frame, fact, std::move(row), *destructor, {root, nullptr}, {}))
      rows.push_back(std::move(outcome.row));
  else if (const Name deleter = deleterOf(*this, frame.function, index);
           !deleter.empty() && value && is(value, ValueKind::Address))
    rows = runDeleter(frame, fact, std::move(row), deleter, value);
  else
    rows.push_back(std::move(row));
  if (!value)
    return rows;
  for (Row &ended : rows) {
    if (!local.isReference)
      endGuards(ended, value, local.type);
    ended.store.erase(root);
  }
  return rows;
}

// Members end in the reverse order of their declaration.
void Machine::endGuards(Row &row, const Value &value, Name type) const {
  if (is(value, ValueKind::Address) && ownsAlone(program.type(type)))
    return endGuards(row, memory.read(row, value->address), types.inner(type));
  if (!is(value, ValueKind::Record))
    return;
  if (const auto guarded = value->fields.find(hidden::deviceBefore); guarded != value->fields.end()) {
    row.currentDevice = guarded->second->term;
    return;
  }
  const Type *record = program.type(value->type);
  if (!record || !record->isProject)
    return;
  for (auto field = record->fields.rbegin(); field != record->fields.rend(); ++field)
    if (const auto member = value->fields.find(field->name);
        member != value->fields.end() && !field->isReference)
      endGuards(row, member->second, field->type);
}

} // namespace devicetidy
