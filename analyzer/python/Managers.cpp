// Managers of `with` that contextlib.contextmanager makes of generators: what stands before the yield is run
// when the block is entered, what stands behind it when the block is left. The second part is a function
// inside the first, so it sees the first one's variables.
#include "analyzer/python/FunctionLowering.h"

#include "analyzer/facts/NameParts.h"

#include <algorithm>

namespace devicetidy::python {
namespace {

bool holdsYield(const Node &node) {
  bool found = node.is("Yield");
  forEachOfBlock(node, [&](const Node &each) { found |= each.is("Yield") || each.is("YieldFrom"); });
  return found;
}

// The value that is yielded, where the statement does nothing else.
Node yieldOf(const Node &statement) {
  const Node value = isOneOf(statement.kind(), {"Expr", "Assign"}) ? statement["value"] : Node();
  return value && value.is("Yield") ? value : Node();
}

// Is there one yield, which every run comes to?
bool isStraight(const std::vector<Node> &body) {
  const auto count = std::count_if(body.begin(), body.end(), holdsYield);
  const auto found = std::find_if(body.begin(), body.end(), holdsYield);
  if (count != 1 || yieldOf(*found))
    return count == 1;
  const std::vector<Node> inner = found->list("body");
  const bool isOnly =
      std::none_of(inner.begin(), inner.end(), [](const Node &each) { return each.is("Return"); });
  return isOneOf(found->kind(), {"Try", "With"}) && isOnly && isStraight(inner);
}

} // namespace

bool FunctionLowering::isManager(const Node &node) const {
  const std::vector<Node> decorators = node.list("decorator_list");
  return isStraight(node.list("body")) &&
         std::any_of(decorators.begin(), decorators.end(), [&](const Node &decorator) {
           const std::optional<Meaning> meaning = meaningOf(decorator);
           return meaning && meaning->name == "contextlib.contextmanager";
         });
}

void FunctionLowering::managerBody(const Node &node) {
  std::vector<Part> behind; // the innermost last
  std::vector<Node> body = node.list("body");
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (!holdsYield(body[i])) {
      statement(body[i]);
      continue;
    }
    const Node around = body[i];
    behind.push_back({std::vector<Node>(body.begin() + static_cast<std::ptrdiff_t>(i) + 1, body.end()), {}});
    if (const Node yielded = yieldOf(around))
      return leaveManager(yielded, behind);
    if (around.is("With"))
      behind.push_back({{}, enterManagers(around, true)});
    else
      for (const char *rest : {"finalbody", "orelse"})
        behind.push_back({around.list(rest), {}});
    body = around.list("body");
    i = static_cast<std::size_t>(-1);
  }
}

// Gives what is entered, and the function that is left to be run.
void FunctionLowering::leaveManager(const Node &yielded, const std::vector<Part> &behind) {
  const Node given = yielded["value"];
  const Operand entered = given ? operand(given) : Operand();
  FunctionLowering rest(parts, this, className, qualified + ".@exit");
  rest.lowerRest(yielded, behind);
  std::vector<Operand> both{use(closure(yielded, rest), yielded)};
  if (given)
    both.push_back(entered);
  block().terminator.value = use(emitCall("manager", std::move(both), yielded), yielded);
  block().terminator.kind = TerminatorKind::Return;
}

void FunctionLowering::lowerRest(const Node &yielded, const std::vector<Part> &behind) {
  selfName = {};
  function.id = parts.module.idOf(qualified);
  function.name = Name(qualified);
  function.where = yielded.where();
  function.isLambda = true;
  for (const Part &part : behind)
    for (const Node &each : part.statements) {
      scope.add(each);
      forEachOfBlock(each, [&](const Node &node) { scope.add(node); });
    }
  addImports();
  for (const std::string &bound : scope.bound)
    if (around->isBound(bound))
      scope.declaredNonlocal.insert(bound);
    else if (!scope.declaredGlobal.count(bound))
      newLocal(bound, {}, yielded);
  for (auto part = behind.rbegin(); part != behind.rend() && !isEnded(); ++part) {
    statements(part->statements);
    for (auto left = part->managers.rbegin(); left != part->managers.rend(); ++left)
      emitCall("exit",
               {use(loadName(yielded, "@manager " + std::to_string(*left)), yielded),
                use(loadName(yielded, "@entered " + std::to_string(*left)), yielded)},
               yielded);
  }
  finish();
}

} // namespace devicetidy::python
