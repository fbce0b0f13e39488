#include "analyzer/solve/questions/Placed.h"

#include "analyzer/solve/domain/HiddenFields.h"
#include "analyzer/solve/domain/Registers.h"

namespace devicetidy {
namespace {

/// A parameter's place begins with its type; the name ends it.
Location nameOf(const Variable &variable) {
  Location where = variable.where;
  const auto length = static_cast<std::uint32_t>(variable.name.view().size());
  if (where.endLine && where.endColumn > length) {
    where.line = where.endLine;
    where.column = where.endColumn - length;
  }
  return where;
}

constexpr std::size_t mostDevices = 4; ///< told of one expression
constexpr unsigned mostPointers = 4;   ///< followed from a variable to what it stands for

/// Where a tensor is that the solver gives up because a move of it was thrown away: the finding is told
/// there.
std::string keptBy(const History &history) {
  for (const Event *event = history.get(); event; event = event->before.get())
    switch (event->step.kind) {
    case StepKind::Discarded:
      return event->step.device;
    case StepKind::Passed:
    case StepKind::Returned:
    case StepKind::Stored:
    case StepKind::Member:
      continue;
    default:
      return {};
    }
  return {};
}

} // namespace

PlacedExpressions::Place PlacedExpressions::placeOf(const Location &where) {
  return {where.file, where.line, where.column, where.endLine, where.endColumn};
}

void PlacedExpressions::begin(const Frame &frame, const Row &row) {
  const Function &function = frame.function;
  if (!files.count(function.where.file))
    return;
  findDeclarations(function);
  for (std::uint32_t i = 0; i < function.paramCount; ++i)
    noteLocal(frame, i, row);
  if (frame.self.valid())
    noteMembers(machine.memory.read(row, frame.self), frame.self, row);
}

void PlacedExpressions::findDeclarations(const Function &function) {
  if (!scanned.insert(&function).second)
    return;
  // Between a declaration and the end of its initialiser there may be branches.
  std::vector<std::pair<BlockId, std::uint32_t>> open;
  std::set<std::pair<BlockId, std::uint32_t>> seen;
  const auto follow = [&](BlockId id, std::size_t from, std::uint32_t local) {
    const Block &block = function.blocks[static_cast<std::size_t>(id)];
    for (std::size_t i = from; i < block.facts.size(); ++i)
      if (block.facts[i].kind == FactKind::EndStatement) {
        declared[&block.facts[i]].push_back(local);
        return;
      }
    for (BlockId next : block.terminator.successors)
      if (seen.emplace(next, local).second)
        open.emplace_back(next, local);
  };
  for (std::size_t id = 0; id < function.blocks.size(); ++id)
    for (std::size_t i = 0; i < function.blocks[id].facts.size(); ++i)
      if (const Fact &fact = function.blocks[id].facts[i]; fact.kind == FactKind::Declare)
        follow(static_cast<BlockId>(id), i + 1, static_cast<std::uint32_t>(fact.number));
  while (!open.empty()) {
    const auto [id, local] = open.back();
    open.pop_back();
    follow(id, 0, local);
  }
}

void PlacedExpressions::step(const Frame &frame, const Fact &fact, const Row &row) {
  if (!files.count(frame.function.where.file))
    return;
  static const Name self("this"); // which is mostly not written, and stands where its member is
  for (const Operand &operand : fact.operands)
    if (operand.where.valid() && !operand.text.empty() && operand.text != self &&
        files.count(operand.where.file)) {
      Value value = registerOf(row, operand.reg);
      Address place;
      if (operand.isAddress && is(value, ValueKind::Address)) {
        place = value->address;
        value = machine.memory.read(row, place);
      }
      note(operand.where, operand.text, value, place, row, Role::Use);
    }
  noteGlobal(fact, row);
  if (const auto ended = declared.find(&fact); ended != declared.end())
    for (std::uint32_t local : ended->second)
      noteLocal(frame, local, row);
}

void PlacedExpressions::noteLocal(const Frame &frame, std::uint32_t local, const Row &row) {
  const Variable &variable = frame.function.locals[local];
  // Names with two underscores are the compiler's: the range of a loop, say, which stands where it is used.
  if (variable.name.empty() || variable.name.view().substr(0, 2) == "__" || !files.count(variable.where.file))
    return;
  const Address place{machine.memory.local(frame.depth, local, variable), nullptr};
  note(nameOf(variable), variable.name, machine.memory.read(row, place), place, row, Role::Declaration);
}

/// What a static variable is initialised with. It is known by its address, which an earlier fact has taken.
void PlacedExpressions::noteGlobal(const Fact &fact, const Row &row) {
  if (fact.kind == FactKind::Global) {
    if (const Value value = registerOf(row, fact.result); is(value, ValueKind::Address))
      globals.emplace(value->address.root, fact.name);
    return;
  }
  const bool isWrite = fact.kind == FactKind::Store || fact.kind == FactKind::Construct;
  if (globals.empty() || !isWrite || fact.operands.empty())
    return;
  const Value target = registerOf(row, fact.operands[0].reg);
  const auto id = is(target, ValueKind::Address) && !target->address.path ? globals.find(target->address.root)
                                                                          : globals.end();
  const auto global =
      id == globals.end() ? machine.program.globals.end() : machine.program.globals.find(id->second);
  if (global != machine.program.globals.end() && files.count(global->second.where.file))
    note(global->second.where, global->second.name, machine.memory.read(row, target->address),
         target->address, row, Role::Declaration);
}

/// Those of its bases too, where they are the user's.
const std::vector<Field> &PlacedExpressions::membersOf(Name type) {
  const auto [entry, isNew] = members.try_emplace(type);
  if (!isNew)
    return entry->second;
  std::vector<Name> work{type};
  std::set<Name> seen;
  while (!work.empty()) {
    const Name name = work.back();
    work.pop_back();
    const Type *known = seen.insert(name).second ? machine.program.type(name) : nullptr;
    if (!known)
      continue;
    work.insert(work.end(), known->bases.begin(), known->bases.end());
    for (const Field &field : known->fields)
      if (field.where.valid() && files.count(field.where.file))
        entry->second.push_back(field);
  }
  return entry->second;
}

void PlacedExpressions::noteMembers(const Value &record, const Address &place, const Row &row) {
  if (!is(record, ValueKind::Record) || record->type.empty())
    return;
  for (const Field &field : membersOf(record->type))
    if (const auto held = record->fields.find(field.name); held != record->fields.end())
      note(field.where, field.name, held->second, place.field(field.name), row, Role::Member);
}

void PlacedExpressions::note(const Location &where, Name text, const Value &value, Address place,
                             const Row &row, Role role) {
  Value held = value;
  for (unsigned i = 0; i < mostPointers && is(held, ValueKind::Address); ++i) {
    place = held->address;
    held = machine.memory.read(row, place);
  }
  PlacedExpression what;
  what.where = where;
  what.text = text.str();
  what.isDeclaration = role == Role::Declaration;
  switch (held->kind) {
  case ValueKind::Tensor:
    add(what, machine.memory.placementOf(row, held), machine.memory.historyOf(row, held));
    return;
  case ValueKind::Device:
    what.kind = PlacedKind::Device;
    add(what, row.resolve(held->placement), held->history);
    return;
  case ValueKind::Options:
    what.kind = PlacedKind::Options;
    if (held->hasDevice)
      add(what, row.resolve(held->placement), held->history);
    return;
  case ValueKind::List: {
    what.kind = PlacedKind::Tensors;
    std::vector<Value> tensors;
    machine.collectTensors(row, held, tensors);
    for (const Value &tensor : tensors)
      add(what, machine.memory.placementOf(row, tensor), machine.memory.historyOf(row, tensor));
    return;
  }
  case ValueKind::Record:
    what.kind = PlacedKind::Module;
    if (place.valid() && machine.types.isModule(held->type))
      noteModule(what, place, row);
    else if (role == Role::Use)
      others.insert(placeOf(where));
    if (place.valid() && role != Role::Member)
      noteMembers(held, place, row);
    return;
  case ValueKind::Function:
    if (role == Role::Use)
      others.insert(placeOf(where));
    return;
  default:
    if (role == Role::Use)
      others.insert(placeOf(where));
    return;
  }
}

void PlacedExpressions::noteModule(const PlacedExpression &what, const Address &module, const Row &row) {
  std::set<std::pair<RootId, Path>> seen;
  std::vector<Address> work{module};
  bool isFound = false;
  while (!work.empty()) {
    const Address address = work.back();
    work.pop_back();
    const Value record = machine.memory.read(row, address);
    if (!is(record, ValueKind::Record) || !seen.emplace(address.root, address.path).second)
      continue;
    for (const auto &[name, field] : record->fields)
      if (hidden::isSubmodule(name) && is(field, ValueKind::Address)) {
        work.push_back(field->address);
      } else if (hidden::isParameter(name) && is(field, ValueKind::Tensor)) {
        isFound = true;
        add(what, machine.memory.placementOf(row, field), machine.memory.historyOf(row, field));
      }
  }
  const Value record = machine.memory.read(row, module);
  if (const auto entry = record->fields.find(hidden::moved); !isFound && entry != record->fields.end())
    add(what, row.resolve(entry->second->placement), entry->second->history);
}

void PlacedExpressions::add(const PlacedExpression &what, const Placement &placement,
                            const History &history) {
  const std::string device = placement.isKnown() ? placement.describe() : keptBy(history);
  if (!what.where.valid() || device.empty())
    return;
  ByDevice &devices = found[placeOf(what.where)];
  if (const auto known = devices.find(device); known != devices.end()) {
    known->second.isDeclaration |= what.isDeclaration;
    return;
  }
  if (devices.size() == mostDevices)
    return;
  PlacedExpression &added = devices[device] = what;
  added.device = device;
  added.isOpen = placement.kind == PlacementKind::Symbol;
  added.history = steps(history);
}

std::vector<PlacedExpression> PlacedExpressions::take() {
  std::vector<PlacedExpression> result;
  for (auto &[place, devices] : found)
    for (auto &[device, expression] : devices)
      result.push_back(std::move(expression));
  for (const Place &place : others)
    if (!found.count(place)) {
      PlacedExpression &other = result.emplace_back();
      std::tie(other.where.file, other.where.line, other.where.column, other.where.endLine,
               other.where.endColumn) = place;
      other.kind = PlacedKind::Other;
    }
  found.clear();
  others.clear();
  return result;
}

} // namespace devicetidy
