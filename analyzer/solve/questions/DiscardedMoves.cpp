#include "analyzer/solve/questions/DiscardedMoves.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/questions/FactWalk.h"

#include <algorithm>
#include <set>

namespace devicetidy {
namespace {

// The value that stands at the address in `object`, a temporary of the expression [begin, end).
Reg temporaryAt(const Fact *begin, const Fact *end, Reg object) {
  const Fact *store = std::find_if(begin, end, [object](const Fact &fact) {
    return fact.kind == FactKind::Store && fact.operands[0].reg == object;
  });
  return store == end ? NoReg : store->operands[1].reg;
}

// `x.argmax(-1).cpu();` waits for the GPU: what was computed has no name, so nothing goes on with it on its
// old device. A view of `x` would be.
bool waitsForResult(const Block &block, const Fact &move, models::TorchVersion version) {
  const Fact *begin = &move; // registers are numbered anew with each full expression
  while (begin != block.facts.data() && begin[-1].kind != FactKind::EndStatement)
    --begin;
  const Reg object = temporaryAt(begin, &move, move.operands[0].reg);
  return object != NoReg && std::any_of(begin, &move, [&](const Fact &fact) {
           const std::string_view name = fact.name.view();
           if (fact.kind != FactKind::Call || fact.result != object ||
               !models::hasRole(firstScope(name), "library"))
             return false;
           const models::Op *op = models::atenOp(lastPart(name), version);
           return !op || !op->isView;
         });
}

// What the loop variable at `object` is a copy of: the range, as written. Empty when it is no copy.
Name rangeCopiedTo(const Function &function, const Block &block, const Fact *assignment) {
  const Fact *const begin = block.facts.data();
  Reg reg = assignment->operands[0].reg;
  const Fact *place = assignment;
  while (place != begin) {
    --place;
    if (place->kind == FactKind::EndStatement || (place->result == reg && place->kind == FactKind::Local))
      break;
    if (place->result == reg && place->kind == FactKind::Field)
      reg = place->operands[0].reg;
  }
  if (place->kind != FactKind::Local || function.locals[static_cast<std::size_t>(place->number)].isReference)
    return {};
  static const Name next("__range_next");
  for (const Block &each : function.blocks)
    for (std::size_t i = 0; i + 1 < each.facts.size(); ++i)
      if (each.facts[i].name == next && each.facts[i + 1].kind == FactKind::Declare &&
          each.facts[i + 1].number == place->number)
        return each.facts[i].operands[0].text;
  return {};
}

class DiscardedMoves {
public:
  explicit DiscardedMoves(const Machine &machine)
      : program(machine.program), types(machine.types), version(machine.version) {
    for (const auto &[where, changes] : machine.discardedChange)
      if (!changes) // the tensor is there already, whenever it is run
        idle.insert(where);
    idle.insert(machine.movedInPlace.begin(), machine.movedInPlace.end()); // it returns what it has moved
    for (const DiscardedMove &move : machine.discarded)
      if (!idle.count(move.where) && seen.emplace(move.where, move.tensor).second)
        moves.push_back(move);
  }

  std::vector<DiscardedMove> find() {
    for (Name id : program.order) {
      const Function &function = *program.function(id);
      for (std::size_t i = 0; i < function.blocks.size(); ++i)
        for (std::size_t j = 0; j < function.blocks[i].facts.size(); ++j) {
          const FactPlace place{&function, static_cast<BlockId>(i), j};
          lookAtResult(place);
          lookAtAssignment(place);
        }
    }
    return std::move(moves);
  }

private:
  // The operator of a method of a tensor that gives a moved copy; null for any other fact.
  const models::Op *moveAt(const Fact &fact) const {
    using models::Rule;
    static const std::set<Rule> moving = {Rule::Move, Rule::ToCpu, Rule::ToCuda, Rule::TypeAs,
                                          Rule::PinMemory};
    if (fact.kind != FactKind::Call || !fact.hasObject || fact.operands.empty())
      return nullptr;
    const std::string_view name = fact.name.view();
    if (types.classOf(Name(scopeOf(name))) != TypeClass::Tensor)
      return nullptr;
    const models::Op *op = models::atenOp(lastPart(name), version);
    return op && moving.count(op->rule) ? op : nullptr;
  }

  // `x.to(device);`
  void lookAtResult(const FactPlace &place) {
    const Fact &fact = place.fact();
    const models::Op *op = fact.isDiscarded ? moveAt(fact) : nullptr;
    const Block &block = place.function->blocks[static_cast<std::size_t>(place.block)];
    if (op && (op->rule != models::Rule::ToCpu || !waitsForResult(block, fact, version)))
      add(place, fact, fact.operands[0].text, false);
  }

  // `for (auto x : list) x = x.to(device);`, and the end of the loop's body
  void lookAtAssignment(const FactPlace &place) {
    const Fact &fact = place.fact();
    if (fact.kind != FactKind::Call || !fact.hasObject || fact.operands.size() != 2 ||
        !isAssignment(fact.name.view()) || types.classOf(fact.operands[0].type) != TypeClass::Tensor)
      return;
    const Block &block = place.function->blocks[static_cast<std::size_t>(place.block)];
    const Fact *begin = &fact;
    while (begin != block.facts.data() && begin[-1].kind != FactKind::EndStatement)
      --begin;
    const Reg moved = temporaryAt(begin, &fact, fact.operands[1].reg);
    const Fact *move =
        std::find_if(begin, &fact, [&](const Fact &each) { return moved != NoReg && each.result == moved; });
    if (move == &fact || !moveAt(*move) || move->operands[0].text != fact.operands[0].text)
      return;
    const Name range = rangeCopiedTo(*place.function, block, &fact);
    if (!range.empty() && isForgotten(place))
      add(place, *move, range, true);
  }

  void add(const FactPlace &place, const Fact &fact, Name tensor, bool isOfCopy) {
    static const Name dtype("c10::ScalarType");
    if (idle.count(fact.where) || !seen.emplace(fact.where, tensor.str()).second)
      return;
    DiscardedMove move;
    move.where = fact.where;
    move.tensor = tensor.str();
    move.method = std::string(lastPart(fact.name.view()));
    move.callText = fact.operands[0].text.str() + "." + move.method + "(...)";
    move.changesDtypeOnly = fact.operands.size() > 1 && fact.operands[1].type == dtype;
    move.isOfCopy = isOfCopy;
    move.functionId = place.function->id.str();
    moves.push_back(std::move(move));
  }

  const Program &program;
  const Types &types;
  const models::TorchVersion version;
  std::vector<DiscardedMove> moves;
  std::set<Location> idle;
  std::set<std::pair<Location, std::string>> seen; // each instance of a template has the same calls
};

} // namespace

std::vector<DiscardedMove> findDiscardedMoves(const Machine &machine) {
  return DiscardedMoves(machine).find();
}

} // namespace devicetidy
