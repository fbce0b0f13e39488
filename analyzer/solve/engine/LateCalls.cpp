#include "analyzer/solve/engine/LateCalls.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/models/Models.h"
#include "analyzer/solve/engine/ClassBodies.h"

#include <algorithm>
#include <map>

namespace devicetidy {
namespace {

// Functions of C++ have targets for their calls.
bool isLate(const Function &function) {
  return std::any_of(function.blocks.begin(), function.blocks.end(), [](const Block &block) {
    return std::any_of(block.facts.begin(), block.facts.end(), isLateBound);
  });
}

// Is it called without its name, as `object(x)`, `object[i]` and `len(object)` do?
bool isImplicit(std::string_view method) { return startsWith(method, "__") || method == "forward"; }

} // namespace

void addLateWrites(const Function &function, const Fact &fact, std::set<Name> &fields,
                   std::set<Name> &classes) {
  static constexpr std::string_view sets = "python::set", setAny = "builtins.setattr";
  if (!isLateBound(fact))
    return;
  const std::string_view what = lastPart(fact.name.view());
  if (scopeOf(fact.name.view()) == sets)
    fields.insert(Name(what));
  if (what == setAny && !function.className.empty())
    classes.insert(function.className);
}

bool movesOwnModule(const std::vector<const Fact *> &expression) {
  static constexpr std::string_view attributes = "python::attribute", move = "module_to";
  std::set<Reg> selves, parts;
  bool moves = false, isDiscarded = false;
  for (const Fact *fact : expression) {
    if (fact->kind == FactKind::This)
      selves.insert(fact->result);
    if (!isLateBound(*fact) || fact->operands.empty())
      continue;
    const Reg object = fact->operands[0].reg;
    const std::string_view name = fact->name.view();
    if (scopeOf(name) == attributes && selves.count(object))
      parts.insert(fact->result);
    moves |= parts.count(object) && models::effect("torch::nn::Module::" + std::string(lastPart(name)), move);
    isDiscarded = fact->isDiscarded;
  }
  return moves && isDiscarded;
}

void LateCalls::add(const std::vector<const Fact *> &expression, const Function &function) {
  static constexpr std::string_view methods = "python::method",
                                    classes = "python::class::", calls = "python::call";
  std::map<Reg, Name> functions;
  std::set<Reg> passed, selves;
  for (const Fact *fact : expression)
    for (std::size_t i = 1; fact->name.view() == calls && i < fact->operands.size(); ++i)
      passed.insert(fact->operands[i].reg);
  for (const Fact *fact : expression) {
    if (fact->kind == FactKind::This)
      selves.insert(fact->result);
    if (fact->kind == FactKind::Closure && !fact->target.empty())
      functions[fact->result] = fact->target;
    // A class that is passed on, to what registers it above all, may be made by whoever asks for it.
    if (fact->kind == FactKind::Closure && startsWith(fact->name.view(), classes) &&
        !passed.count(fact->result))
      made.insert(Name(fact->name.view().substr(classes.size())));
    if (!isLateBound(*fact))
      continue;
    const std::string_view method = scopeOf(fact->name.view()) == methods ? lastPart(fact->name.view()) : "";
    if (!method.empty() && selves.count(fact->operands[0].reg))
      ofSelf[Name(method)].insert(function.className);
    else if (!method.empty())
      named.insert(Name(method));
    if (!method.empty())
      (function.isConstructor ? whileMaking : afterMaking).insert(Name(method));
    if (fact->name.view() == calls && functions.count(fact->operands[0].reg))
      called.insert(functions[fact->operands[0].reg]);
  }
}

LateCalls::Functions LateCalls::functions(const Program &program) const {
  Functions all;
  all.called = called;
  for (const auto &[id, function] : program.functions) {
    const Name method(lastPart(function.name.view())), className = function.className;
    if (className.empty() || !isLate(function))
      continue;
    const auto own = ofSelf.find(method);
    if (own != ofSelf.end() &&
        std::any_of(own->second.begin(), own->second.end(),
                    [&, &owner = className](Name each) { return areRelated(program, each, owner); }))
      all.bySiblings.insert(id);
    if (whileMaking.count(method) && !afterMaking.count(method) && !isImplicit(method.view()))
      all.whileMaking.insert(id);
    // Objects that the program does not make are those of whoever makes them.
    const bool isMade = std::any_of(made.begin(), made.end(), [&, &owner = className](Name each) {
      return isOrDerivesFrom(program, each, owner);
    });
    if (isMade && (named.count(method) || isImplicit(method.view()) || all.bySiblings.count(id)))
      all.called.insert(id);
  }
  return all;
}

} // namespace devicetidy
