#include "analyzer/solve/Placed.h"

#include "analyzer/solve/Registers.h"

namespace devicetidy {
namespace {

constexpr std::size_t mostDevices = 4; ///< told of one expression
constexpr unsigned mostPointers = 4;   ///< followed from a variable to what it stands for

} // namespace

void PlacedExpressions::enter(const Frame &frame, const Row &row) {
  const Function &function = frame.function;
  if (!files.count(function.where.file))
    return;
  findDeclarations(function);
  for (std::uint32_t i = 0; i < function.paramCount; ++i)
    noteLocal(frame, i, row);
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
  for (const Operand &operand : fact.operands)
    if (operand.where.valid() && !operand.text.empty() && files.count(operand.where.file)) {
      Value value = registerOf(row, operand.reg);
      if (operand.isAddress && is(value, ValueKind::Address))
        value = machine.memory.read(row, value->address);
      note(operand.where, operand.text, value, row, /*isDeclaration=*/false);
    }
  if (const auto ended = declared.find(&fact); ended != declared.end())
    for (std::uint32_t local : ended->second)
      noteLocal(frame, local, row);
}

void PlacedExpressions::noteLocal(const Frame &frame, std::uint32_t local, const Row &row) {
  const Variable &variable = frame.function.locals[local];
  if (variable.name.empty() || !files.count(variable.where.file))
    return;
  const RootId root = machine.memory.local(frame.depth, local, variable);
  note(variable.where, variable.name, machine.memory.read(row, {root, nullptr}), row, /*isDeclaration=*/true);
}

void PlacedExpressions::note(const Location &where, Name text, const Value &value, const Row &row,
                             bool isDeclaration) {
  Value held = value;
  Address place;
  for (unsigned i = 0; i < mostPointers && is(held, ValueKind::Address); ++i) {
    place = held->address;
    held = machine.memory.read(row, place);
  }
  PlacedExpression what;
  what.where = where;
  what.text = text.str();
  what.isDeclaration = isDeclaration;
  switch (held->kind) {
  case ValueKind::Tensor:
    add(what, machine.memory.placementOf(row, held), machine.memory.historyOf(row, held));
    return;
  case ValueKind::Device:
    what.kind = PlacedKind::Device;
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
    return;
  default:
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
  static const Name moved("@moved");
  const Value record = machine.memory.read(row, module);
  if (const auto entry = record->fields.find(moved); !isFound && entry != record->fields.end())
    add(what, row.resolve(entry->second->placement), entry->second->history);
}

void PlacedExpressions::add(const PlacedExpression &what, const Placement &placement,
                            const History &history) {
  const Location &where = what.where;
  if (!where.valid() || !placement.isKnown())
    return;
  ByDevice &devices = found[{where.file, where.line, where.column, where.endLine, where.endColumn}];
  const std::string device = placement.describe();
  if (const auto known = devices.find(device); known != devices.end()) {
    known->second.isDeclaration |= what.isDeclaration;
    return;
  }
  if (devices.size() == mostDevices)
    return;
  PlacedExpression &added = devices[device] = what;
  added.device = device;
  added.isOpen = placement.kind == PlacementKind::Symbol;
  added.witness = steps(history);
}

std::vector<PlacedExpression> PlacedExpressions::take() {
  std::vector<PlacedExpression> result;
  for (auto &[place, devices] : found)
    for (auto &[device, expression] : devices)
      result.push_back(std::move(expression));
  found.clear();
  return result;
}

} // namespace devicetidy
