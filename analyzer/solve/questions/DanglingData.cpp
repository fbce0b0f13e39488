//===- DanglingData.cpp - pointers into tensors that are gone ------===//
//
// `float *p = x.cpu().data_ptr<float>();`: the copy ends with the statement, and its memory with it. Were `x`
// on the CPU, the copy would be `x` itself: such code works until somebody trains on a GPU. What is used in
// the same full expression is fine.
//
//===----------------------------------------------------------------------===//
#include "analyzer/solve/questions/DanglingData.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/TermOps.h"

#include <algorithm>
#include <optional>
#include <set>

namespace devicetidy {
namespace {

enum class Memory { Kept, Moved, Own };

// The facts of one full expression, or of the part of it that is in one block.
class Expression {
public:
  Expression(const Function &function, const Types &types, models::TorchVersion version, const Fact *begin,
             const Fact *end)
      : function(function), types(types), version(version), begin(begin), end(end) {}

  std::optional<DanglingData> danglingAt(const Fact &call, const std::vector<Name> &usedLater,
                                         const Terminator *terminator) const {
    const models::Op *op = tensorOp(call);
    if (!op || op->rule != models::Rule::Host || !pointsIntoMemory(call.type) ||
        !endsHere(call.operands[0].reg))
      return std::nullopt;
    const Memory memory = memoryOf(call.operands[0].reg);
    if (memory == Memory::Kept)
      return std::nullopt;
    const std::optional<Name> pointer = keptAs(call, usedLater, terminator);
    if (!pointer)
      return std::nullopt;
    DanglingData data;
    data.level = memory == Memory::Own ? Level::Definite : Level::Likely;
    data.where = call.where;
    data.tensor = call.operands[0].text.str();
    data.pointer = pointer->str();
    data.functionId = function.id.str();
    return data;
  }

private:
  const models::Op *tensorOp(const Fact &fact) const {
    return fact.kind == FactKind::Call && fact.hasObject && !fact.operands.empty() &&
                   types.classOf(fact.operands[0].type) == TypeClass::Tensor
               ? models::atenOp(lastPart(fact.name.view()), version)
               : nullptr;
  }

  bool pointsIntoMemory(Name type) const {
    const Type *known = types.program.type(type);
    return (known && known->kind == TypeKind::Pointer) || types.kindOf(type) == std::string_view("accessor");
  }

  const Fact *made(Reg reg) const {
    const Fact *fact = std::find_if(begin, end, [&](const Fact &each) { return each.result == reg; });
    return fact == end ? nullptr : fact;
  }

  // Is the object at `reg` a temporary that ends with the expression?
  bool endsHere(Reg reg) const {
    const Fact *local = made(reg);
    return local && local->kind == FactKind::Local && isTemporary(local->number) &&
           std::any_of(begin, end, [&](const Fact &fact) {
             return fact.kind == FactKind::EndScope && fact.number == local->number;
           });
  }

  bool isTemporary(std::int64_t local) const {
    return function.locals[static_cast<std::size_t>(local)].name.empty();
  }

  // Does the tensor at the address `reg` have memory of its own?
  Memory memoryOf(Reg reg) const {
    const Fact *store = std::find_if(begin, end, [&](const Fact &fact) {
      return fact.kind == FactKind::Store && fact.operands[0].reg == reg;
    });
    const Fact *call = store == end ? nullptr : made(store->operands[1].reg);
    if (!call || call->kind != FactKind::Call || !models::hasRole(firstScope(call->name.view()), "library"))
      return Memory::Kept;
    const models::Op *op = models::atenOp(lastPart(call->name.view()), version);
    using models::Rule;
    static const std::set<Rule> moving = {Rule::Move, Rule::ToCpu, Rule::ToCuda, Rule::PinMemory};
    static const std::set<Rule> making = {Rule::Strict, Rule::Iterator, Rule::Factory, Rule::Like};
    if (!op)
      return Memory::Kept;
    if (moving.count(op->rule))
      return Memory::Moved;
    if (op->isView)
      return call->operands.empty() ? Memory::Kept : memoryOf(call->operands[0].reg);
    return making.count(op->rule) && op->result != models::Result::Unknown ? Memory::Own : Memory::Kept;
  }

  // What the pointer that `call` gives is kept in, beyond the expression.
  std::optional<Name> keptAs(const Fact &call, const std::vector<Name> &usedLater,
                             const Terminator *terminator) const {
    std::set<Reg> pointers{call.result};
    for (const Fact *fact = &call + 1; fact != end; ++fact) {
      const bool derives = fact->kind == FactKind::Operator || fact->kind == FactKind::Element;
      if (derives && pointers.count(fact->operands[0].reg) && fact->result != NoReg &&
          (fact->name == op::plus || fact->name == op::minus || fact->name == op::cast))
        pointers.insert(fact->result);
      if (fact->kind != FactKind::Store || !pointers.count(fact->operands[1].reg))
        continue;
      const Fact *place = made(fact->operands[0].reg);
      if (place && place->kind == FactKind::Field)
        return place->name;
      if (!place || place->kind != FactKind::Local || isTemporary(place->number))
        continue;
      const Name name = function.locals[static_cast<std::size_t>(place->number)].name;
      if (std::find(usedLater.begin(), usedLater.end(), name) != usedLater.end())
        return name;
    }
    if (terminator && terminator->kind == TerminatorKind::Return && pointers.count(terminator->value.reg))
      return terminator->value.text;
    return std::nullopt;
  }

  const Function &function;
  const Types &types;
  const models::TorchVersion version;
  const Fact *begin, *end;
};

// The variables that more than one full expression mentions.
std::vector<Name> usedAgain(const Function &function) {
  std::vector<Name> used;
  std::set<Name> once;
  for (const Block &block : function.blocks) {
    std::set<Name> here;
    for (const Fact &fact : block.facts) {
      if (fact.kind == FactKind::Local)
        here.insert(function.locals[static_cast<std::size_t>(fact.number)].name);
      if (fact.kind != FactKind::EndStatement && &fact != &block.facts.back())
        continue;
      for (Name name : here)
        if (!once.insert(name).second)
          used.push_back(name);
      here.clear();
    }
  }
  return used;
}

} // namespace

std::vector<DanglingData> findDanglingData(const Program &program, const Types &types,
                                           models::TorchVersion version) {
  std::vector<DanglingData> found;
  std::set<Location> seen; // each instance of a template has the same calls
  for (Name id : program.order) {
    const Function &function = *program.function(id);
    std::vector<Name> again;
    for (const Block &block : function.blocks) {
      const Fact *const last = block.facts.data() + block.facts.size();
      for (const Fact *begin = block.facts.data(); begin != last;) {
        const Fact *end =
            std::find_if(begin, last, [](const Fact &fact) { return fact.kind == FactKind::EndStatement; });
        const Expression expression(function, types, version, begin, end);
        for (const Fact *fact = begin; fact != end; ++fact) {
          if (fact->kind != FactKind::Call || !fact->hasObject || fact->result == NoReg)
            continue;
          if (again.empty() && models::atenOp(lastPart(fact->name.view()), version))
            again = usedAgain(function);
          auto data = expression.danglingAt(*fact, again, end == last ? &block.terminator : nullptr);
          if (data && seen.insert(data->where).second)
            found.push_back(std::move(*data));
        }
        begin = end == last ? last : end + 1;
      }
    }
  }
  return found;
}

} // namespace devicetidy
