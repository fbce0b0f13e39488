#include "analyzer/solve/questions/Distributed.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/models/Models.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/library/config/Config.h"
#include "analyzer/solve/library/config/MapText.h"

namespace devicetidy {
namespace {

std::string initialiserIn(const Fact &fact, const DistributedNames &names) {
  const auto isInit = [&names](std::string_view name) { return initialises(name, names); };
  const std::string_view name = fact.name.view();
  if (const std::string path(libraryPath(name)); !path.empty())
    return isInit(path) || !models::findRole(path + "(", "python_init").empty() ? path : std::string();
  if (isInit(name))
    return std::string(name);
  if (fact.kind == FactKind::Construct && isInit(scopeOf(name)))
    return std::string(scopeOf(name));
  if (fact.kind == FactKind::Call && models::hasRole(name, "maker"))
    for (Name type : fact.templateTypes)
      if (isInit(type.view()))
        return type.str();
  return {};
}

bool namesInit(std::string_view literal) {
  return !models::findRole(literal, "launcher").empty() ||
         !models::findRole(std::string(literal) + "(", "python_init").empty();
}

void appendText(const Call &call, const Value &value, std::string &out, int depth) {
  switch (value->kind) {
  case ValueKind::Scalar:
    out += ' ' + textOfTerm(call.row.resolve(value->term));
    break;
  case ValueKind::List:
    if (canDescend(depth, Bound::TextNesting))
      for (const Value &element : value->elements)
        appendText(call, element, out, depth - 1);
    break;
  case ValueKind::Address:
    if (canDescend(depth, Bound::TextNesting))
      appendText(call, call.machine.memory.read(call.row, value->address), out, depth - 1);
    break;
  default:
    break;
  }
}

} // namespace

std::string_view libraryPath(std::string_view name) {
  constexpr std::string_view prefix = "python::library::";
  return startsWith(name, prefix) ? name.substr(prefix.size()) : std::string_view();
}

bool mayInitialise(const Program &program, const DistributedNames &names) {
  for (Name id : program.order)
    for (const Block &block : program.function(id)->blocks)
      for (const Fact &fact : block.facts) {
        const bool isCall = fact.kind == FactKind::Call || fact.kind == FactKind::Construct;
        if (isCall && !initialiserIn(fact, names).empty())
          return true;
        if (fact.kind == FactKind::Literal && fact.literal == LiteralKind::String &&
            namesInit(fact.name.view()))
          return true;
      }
  return false;
}

std::string textOfTerm(Term term) {
  if (term->kind == TermKind::Text)
    return term->name.str();
  if (term->kind != TermKind::Apply || term->name != op::concat)
    return " ";
  std::string text;
  for (Term part : term->args)
    text += textOfTerm(part);
  return text;
}

std::string textOfArguments(const Call &call) {
  std::string text;
  for (std::size_t i = 0; i < call.argCount(); ++i)
    appendText(call, call.arg(i), text, bounds::textNesting);
  return text;
}

std::string initialiserOf(const Call &call) {
  if (std::string name = initialiserIn(call.fact, call.machine.names); !name.empty())
    return name;
  const std::string_view callee = call.fact.name.view();
  if (startsProgram(callee, call.machine.names))
    return std::string(launcherIn(textOfArguments(call)));
  if (runsPython(callee))
    return std::string(models::findRole(withoutComments(textOfArguments(call)), "python_init"));
  if (std::string path = pythonCallee(call); !path.empty())
    return models::findRole(path + "(", "python_init").empty() ? std::string() : path;
  return {};
}

} // namespace devicetidy
