#include "analyzer/solve/library/python/Loads.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/models/Models.h"
#include "analyzer/solve/library/python/Groups.h"
#include "analyzer/solve/library/torch/RankDevices.h"

#include <algorithm>
#include <cctype>

namespace devicetidy::python {
namespace {

const Name mapParameter("map_location");
constexpr std::string_view methodPrefix = "python::method::";

// The facts of `function`, in their order.
template <typename Visit> void forEachFact(const Function &function, Visit visit) {
  for (const Block &block : function.blocks)
    for (const Fact &fact : block.facts)
      visit(block, fact);
}

bool isMethod(const Fact &fact, std::string_view name) {
  return fact.kind == FactKind::Call && startsWith(fact.name.view(), methodPrefix) &&
         fact.name.view().substr(methodPrefix.size()) == name && fact.operands.size() > 1;
}

bool isWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Is `word` one of the words of `text`?
bool hasWord(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1))
    if ((at == 0 || !isWord(text[at - 1])) &&
        (at + word.size() == text.size() || !isWord(text[at + word.size()])))
      return true;
  return false;
}

bool isWithin(const Location &part, const Location &whole) {
  return part.file == whole.file && whole.line <= part.line && part.endLine <= whole.endLine &&
         (part.line > whole.line || part.column >= whole.column) &&
         (part.endLine < whole.endLine || part.endColumn <= whole.endColumn);
}

const Variable *parameterIn(const Function &function, Name name) {
  for (std::uint32_t i = 0; i < function.paramCount; ++i)
    if (function.locals[i].name == name)
      return &function.locals[i];
  return nullptr;
}

// Does the function do anything with its parameter?
bool uses(const Function &function, const Variable &parameter) {
  bool isUsed = false;
  forEachFact(function, [&](const Block &, const Fact &fact) {
    isUsed |= fact.kind == FactKind::Closure &&
              std::find(fact.captures.begin(), fact.captures.end(), parameter.name) != fact.captures.end();
    for (const Operand &operand : fact.operands) // it is bound where it is declared
      isUsed |= operand.where != parameter.where && hasWord(operand.text.view(), parameter.name.view());
  });
  return isUsed;
}

// The variable that what is made at `where` is put into.
std::string variableFor(const Function &function, const Location &where) {
  std::string name;
  forEachFact(function, [&](const Block &block, const Fact &fact) {
    if (fact.kind != FactKind::Store || fact.operands.size() != 2 || fact.operands[1].where != where)
      return;
    for (const Fact &place : block.facts)
      if (place.result == fact.operands[0].reg && place.kind == FactKind::Local)
        name = function.locals[static_cast<std::size_t>(place.number)].name.str();
      else if (place.result == fact.operands[0].reg && place.kind == FactKind::Global)
        name = std::string(place.name.view().substr(place.name.view().find_last_of(":.") + 1));
  });
  return name;
}

// A scheduler, a scaler: what it restores is numbers.
bool hasNoTensors(std::string_view object) {
  std::string lowered(object);
  std::transform(lowered.begin(), lowered.end(), lowered.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return !models::findRole(lowered, "keeps_numbers").empty();
}

// Does the function restore a model or an optimizer from what is loaded at `where`?
bool restores(const Function &function, const Location &where) {
  const std::string variable = variableFor(function, where);
  bool isRestored = false;
  forEachFact(function, [&](const Block &, const Fact &fact) {
    if (!isMethod(fact, "load_state_dict") || hasNoTensors(fact.operands[0].text.view()))
      return;
    const Operand &given = fact.operands[1];
    const std::string_view text = given.text.view();
    isRestored |=
        isWithin(where, given.where) || (!variable.empty() && startsWith(text, variable) &&
                                         (text.size() == variable.size() || !isWord(text[variable.size()])));
  });
  return isRestored;
}

// Is the same file loaded with a device elsewhere in the function? Then this way is meant to have none.
bool isMappedElsewhere(const Function &function, const Fact &load) {
  bool isMapped = false;
  forEachFact(function, [&](const Block &, const Fact &fact) {
    isMapped |= fact.kind == FactKind::Call && fact.where != load.where && fact.operands.size() > 1 &&
                fact.operands[0].text == load.operands[0].text &&
                fact.operands[1].text == load.operands[1].text &&
                std::find(fact.captures.begin(), fact.captures.end(), mapParameter) != fact.captures.end();
  });
  return isMapped;
}

// load(..).to(device): where it is moved to what a variable says.
Location movedAt(const Function &function, const Location &where) {
  Location moved;
  forEachFact(function, [&](const Block &, const Fact &fact) {
    if (isMethod(fact, "to") && fact.operands[0].where == where &&
        fact.operands[1].text.view().find_first_of("\"'") == std::string_view::npos)
      moved = fact.where;
  });
  return moved;
}

// What the program says of machines and files.
struct Machines {
  bool namesCpu = false;   ///< beside GPUs
  bool asksForGpu = false; ///< whether there is one
  bool saves = false;      ///< files, which may be those it loads
};

Machines machinesOf(const Program &program) {
  static const Name cpu("cpu"), save("torch.save"), available("python::library::torch.cuda.is_available");
  Machines machines;
  for (const Name id : program.order)
    if (const Function &function = *program.function(id); !function.isModel)
      forEachFact(function, [&](const Block &, const Fact &fact) {
        if (fact.kind == FactKind::Literal)
          machines.namesCpu |= fact.literal == LiteralKind::String && fact.name == cpu;
        else if (fact.kind == FactKind::Call && fact.name == available)
          machines.asksForGpu = true;
        else if (fact.kind == FactKind::Call && !fact.operands.empty())
          machines.saves |= fact.operands[0].text == save;
      });
  return machines;
}

// May the program run without a GPU, where nothing can be put that was saved from one? What it saves itself
// is on the machine that it runs on.
bool mayHaveNoGpu(const Program &program, bool isMoved) {
  const Machines machines = machinesOf(program);
  return machines.namesCpu && (isMoved || (machines.asksForGpu && !machines.saves));
}

bool isTold(const Solution &solution, const Location &where) {
  return std::any_of(solution.unmappedLoads.begin(), solution.unmappedLoads.end(),
                     [&](const UnmappedLoad &each) { return each.where == where; });
}

void add(Call &call, const Fact &load, Name parameter, const Location &declared) {
  call.machine.solution.unmappedLoads.push_back({Level::Likely, load.where, "load", parameter.str(), declared,
                                                 callersOf(call.machine.types, *call.frame.user)});
}

} // namespace

Value noteUnmappedLoad(Call &call, Row &row, const Given &) {
  const Fact *site = call.frame.site;
  if (!site || site->operands.size() < 2 || isTold(call.machine.solution, site->where) ||
      isMappedElsewhere(call.frame.user->function, *site))
    return nullValue();
  const Function &function = call.frame.user->function;
  const Variable *parameter = parameterIn(function, mapParameter);
  const bool isRestored = restores(function, site->where);
  if (parameter && (isRestored || !uses(function, *parameter))) {
    add(call, *site, mapParameter, parameter->where);
  } else if (isRestored && !isOneRank(row) && areRanksJoined(call, row)) {
    // In another file a device may come with what is loaded there.
    const bool isHere = ranksAskedAt(call.machine, row).file == site->where.file;
    collide(call, {isHere ? Level::Likely : Level::Latent,
                   site->where,
                   "load",
                   {},
                   site->where,
                   RankFault::Loaded,
                   callersOf(call.machine.types, *call.frame.user)});
  } else if (const Location moved = movedAt(function, site->where);
             (moved.valid() || isRestored) && !areRanksJoined(call, row) &&
             mayHaveNoGpu(call.machine.program, moved.valid())) {
    add(call, *site, {}, moved);
  }
  return nullValue();
}

} // namespace devicetidy::python
