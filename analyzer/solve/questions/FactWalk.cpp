#include "analyzer/solve/questions/FactWalk.h"

#include <algorithm>
#include <optional>

namespace devicetidy {
namespace {

const Block &blockOf(const FactPlace &place) {
  return place.function->blocks[static_cast<std::size_t>(place.block)];
}

/// The fact of the same statement, in the same block, that makes the register `reg`.
std::optional<FactPlace> makerOf(FactPlace place, Reg reg) {
  while (reg != NoReg && place.index > 0) {
    --place.index;
    if (place.fact().kind == FactKind::EndStatement)
      break;
    if (place.fact().result == reg)
      return place;
  }
  return std::nullopt;
}

std::optional<FactPlace> makerOfOperand(const FactPlace &place, std::size_t operand) {
  const std::vector<Operand> &operands = place.fact().operands;
  return operand < operands.size() ? makerOf(place, operands[operand].reg) : std::nullopt;
}

/// Calls `visit` for the blocks that can run after `place`, each once, until it says that it is done. The
/// block of `place` is among them when control comes back to it.
template <typename Visit> void walkFrom(const FactPlace &place, Visit visit) {
  const Function &function = *place.function;
  std::vector<bool> isSeen(function.blocks.size());
  std::vector<BlockId> open;
  const auto leave = [&](const Block &block) {
    open.insert(open.end(), block.terminator.successors.begin(), block.terminator.successors.end());
    open.push_back(block.handler);
  };
  leave(blockOf(place));
  while (!open.empty()) {
    const BlockId id = open.back();
    open.pop_back();
    if (id < 0 || isSeen[static_cast<std::size_t>(id)])
      continue;
    isSeen[static_cast<std::size_t>(id)] = true;
    if (visit(id))
      leave(function.blocks[static_cast<std::size_t>(id)]);
  }
}

/// The one place where `local` is given a value.
std::optional<FactPlace> bindingOf(const Function &function, std::int64_t local) {
  std::optional<FactPlace> binding;
  for (std::size_t b = 0; b < function.blocks.size(); ++b)
    for (std::size_t i = 0; i < function.blocks[b].facts.size(); ++i) {
      const FactPlace place{&function, static_cast<BlockId>(b), i};
      if (place.fact().kind != FactKind::Store)
        continue;
      const std::optional<FactPlace> cell = makerOfOperand(place, 0);
      if (!cell || cell->fact().kind != FactKind::Local || cell->fact().number != local)
        continue;
      if (binding)
        return std::nullopt;
      binding = place;
    }
  return binding;
}

/// The variable or temporary of the function that holds the object at operand `operand` of `place`; -1 when
/// it is held elsewhere or the holder is unknown. Elements are taken to be held by their container.
std::int64_t holderOf(FactPlace place, std::size_t operand) {
  for (int steps = 0; steps < 32; ++steps) {
    const std::optional<FactPlace> maker = makerOfOperand(place, operand);
    if (!maker)
      return -1;
    place = *maker;
    operand = 0;
    const Fact &fact = place.fact();
    if (fact.kind == FactKind::Local)
      return place.function->locals[static_cast<std::size_t>(fact.number)].isReference ? -1 : fact.number;
    if (fact.kind == FactKind::Load && fact.resultIsAddress) {
      const std::optional<FactPlace> cell = makerOfOperand(place, 0);
      const std::optional<FactPlace> binding = cell && cell->fact().kind == FactKind::Local
                                                   ? bindingOf(*place.function, cell->fact().number)
                                                   : std::nullopt;
      if (!binding)
        return -1;
      place = *binding;
      operand = 1;
    } else if (fact.kind != FactKind::Field && fact.kind != FactKind::Element &&
               fact.name.view() != "__range_next" && fact.name.view() != "torch::OrderedDict::Item::value") {
      return -1;
    }
  }
  return -1;
}

/// Does a call of `name` give out the tensors of the module it is made on?
bool givesTensors(std::string_view name) {
  static constexpr std::string_view module = "torch::nn::Module::";
  if (name.substr(0, module.size()) != module)
    return false;
  name.remove_prefix(module.size());
  return name == "parameters" || name == "named_parameters" || name == "buffers" || name == "named_buffers";
}

/// Does the fact, which writes `member`, only say that there is nothing yet: a null pointer, `member()`, or
/// nothing at all, as opposed to `member(Layer())`?
bool isDefault(const Program &program, const Fact &fact, std::string_view member) {
  if (fact.operands.size() > 1) {
    const Type *type = program.type(fact.operands[1].type);
    return fact.operands.size() == 2 && type && type->kind == TypeKind::Pointer && type->pointee.empty();
  }
  const std::string_view text = fact.operands.empty() ? std::string_view() : fact.operands[0].text.view();
  return text.empty() || (text.back() != ')' && text.back() != '}') ||
         text.substr(0, member.size()) == member;
}

} // namespace

bool isInLoop(const FactPlace &place) {
  bool comesBack = false;
  walkFrom(place, [&](BlockId id) {
    comesBack |= id == place.block;
    return !comesBack;
  });
  return comesBack;
}

bool isForgotten(const FactPlace &place) {
  const std::int64_t local = holderOf(place, 0);
  if (local < 0)
    return false;
  bool isMentioned = false;
  // Does control go on with the variable unmentioned? Where it is declared another one begins its life.
  const auto passes = [&](const Block &block, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const Fact &fact = block.facts[i];
      if (fact.number != local || (fact.kind != FactKind::Local && fact.kind != FactKind::Declare))
        continue;
      isMentioned |= fact.kind == FactKind::Local;
      return false;
    }
    return true;
  };
  const Block &own = blockOf(place);
  std::size_t statement = place.index; // the statement mentions the variable itself when a loop repeats it
  while (statement > 0 && own.facts[statement - 1].kind != FactKind::EndStatement)
    --statement;
  if (passes(own, place.index + 1, own.facts.size()))
    walkFrom(place, [&](BlockId id) {
      const Block &block = place.function->blocks[static_cast<std::size_t>(id)];
      return !isMentioned && passes(block, 0, id == place.block ? statement : block.facts.size());
    });
  return !isMentioned;
}

std::optional<OwningModule> owningModule(const FactPlace &call) {
  FactPlace place = call;
  std::size_t operand = 0;
  for (int steps = 0; steps < 32; ++steps) {
    const std::optional<FactPlace> maker = makerOfOperand(place, operand);
    if (!maker)
      return std::nullopt;
    place = *maker;
    operand = 0;
    const Fact &fact = place.fact();
    if (fact.kind == FactKind::Call && fact.hasObject && givesTensors(fact.name.view()))
      return OwningModule{fact.operands[0].text, fact.isObjectPointee};
    if (fact.kind == FactKind::Local) {
      const std::optional<FactPlace> binding = bindingOf(*place.function, fact.number);
      if (!binding)
        return std::nullopt;
      place = *binding;
      operand = 1;
    } else if (fact.kind == FactKind::Call ? !fact.resultIsAddress : fact.kind != FactKind::Load) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

std::optional<FactPlace> callOf(const OperandPlace &operand) {
  std::optional<FactPlace> maker = makerOfOperand(operand.place, operand.index);
  if (maker && maker->fact().kind == FactKind::Local)
    if (const std::optional<FactPlace> binding = bindingOf(*maker->function, maker->fact().number))
      maker = makerOfOperand(*binding, 1);
  return maker && maker->fact().kind == FactKind::Call ? maker : std::nullopt;
}

std::vector<OperandPlace> valuesOf(const Program &program, const Function &function,
                                   std::string_view member) {
  static constexpr std::string_view assignment = "::operator=";
  std::vector<OperandPlace> values;
  for (std::size_t b = 0; b < function.blocks.size(); ++b)
    for (std::size_t i = 0; i < function.blocks[b].facts.size(); ++i) {
      const FactPlace place{&function, static_cast<BlockId>(b), i};
      const Fact &fact = place.fact();
      const std::string_view name = fact.name.view();
      const bool isAssignment = fact.kind == FactKind::Call && fact.hasObject &&
                                name.size() > assignment.size() &&
                                name.substr(name.size() - assignment.size()) == assignment;
      const bool isConstruction = fact.kind == FactKind::Construct;
      if (!(isAssignment || isConstruction || fact.kind == FactKind::Store) ||
          isDefault(program, fact, member))
        continue;
      const std::optional<FactPlace> field = makerOfOperand(place, 0);
      if (!field || field->fact().kind != FactKind::Field || field->fact().name.view() != member)
        continue;
      const std::optional<FactPlace> object = makerOfOperand(*field, 0);
      if (!object || object->fact().kind != FactKind::This)
        continue;
      values.push_back({place, isConstruction ? 0U : 1U});
    }
  return values;
}

} // namespace devicetidy
