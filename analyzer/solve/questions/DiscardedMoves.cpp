#include "analyzer/solve/questions/DiscardedMoves.h"

#include "analyzer/facts/NameParts.h"

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

} // namespace

std::vector<DiscardedMove> findDiscardedMoves(const Program &program, const Types &types,
                                              models::TorchVersion version) {
  using models::Rule;
  static const std::set<Rule> moving = {Rule::Move, Rule::ToCpu, Rule::ToCuda, Rule::TypeAs, Rule::PinMemory};
  static const Name dtype("c10::ScalarType");
  std::vector<DiscardedMove> moves;
  std::set<std::pair<Location, std::string>> seen; // each instance of a template has the same calls
  for (Name id : program.order)
    for (const Block &block : program.function(id)->blocks)
      for (const Fact &fact : block.facts) {
        if (fact.kind != FactKind::Call || !fact.isDiscarded || !fact.hasObject || fact.operands.empty())
          continue;
        const std::string_view name = fact.name.view();
        if (types.classOf(Name(scopeOf(name))) != TypeClass::Tensor)
          continue;
        const models::Op *op = models::atenOp(lastPart(name), version);
        if (!op || !moving.count(op->rule) ||
            (op->rule == Rule::ToCpu && waitsForResult(block, fact, version)) ||
            !seen.emplace(fact.where, fact.operands[0].text.str()).second)
          continue;
        DiscardedMove move;
        move.where = fact.where;
        move.tensor = fact.operands[0].text.str();
        move.method = std::string(lastPart(name));
        move.callText = move.tensor + "." + move.method + "(...)";
        move.changesDtypeOnly = fact.operands.size() > 1 && fact.operands[1].type == dtype;
        move.functionId = id.str();
        moves.push_back(std::move(move));
      }
  return moves;
}

} // namespace devicetidy
