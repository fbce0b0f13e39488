#include "analyzer/solve/questions/DeviceMaps.h"

#include "analyzer/facts/Language.h"
#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/HiddenFields.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/library/config/Config.h"
#include "analyzer/solve/library/config/MapText.h"
#include "analyzer/solve/library/torch/Devices.h"
#include "analyzer/solve/questions/Distributed.h"

#include <algorithm>

namespace devicetidy {
namespace {

constexpr std::string_view launchMark = "dt.launched"; ///< the program is started by what its argument says

RootId initialisedRoot(Machine &machine) { return machine.memory.global("@distributed training", {}, {}); }
RootId mapsRoot(Machine &machine) { return machine.memory.global("@device maps", {}, {}); }

std::string keyOf(const std::string &name, const Location &where) {
  return name + "@" + where.file.str() + ":" + std::to_string(where.line) + ":" +
         std::to_string(where.column);
}

bool dependsOnIteration(Term term) {
  return applies(term, op::loop) || applies(term, op::previous) || contains(term, elementIndex());
}

// Does `term` add something unknown (the first device of this process's share)?
bool hasOffset(Term term) {
  if (term->kind != TermKind::Apply || term->name == op::loop || term->name == op::previous)
    return false;
  const bool adds = term->name == Name("+") || term->name == Name("-");
  for (Term part : term->args)
    if ((adds && part->kind != TermKind::Int && !dependsOnIteration(part) && !contains(part, countTerm())) ||
        hasOffset(part))
      return true;
  return false;
}

// The first of a pair (an option in a list of options); unknown for anything else.
Value keyOfPair(const Value &value) {
  auto first = value->fields.find("first");
  return first != value->fields.end() && value->fields.count("second") ? first->second : unknownValue();
}

// The only place outside of the call where the function at hand, or the data that the program reads, has
// `map` as a text.
Location placeOf(const Call &call, const std::string &map) {
  std::set<Location> places;
  const auto look = [&](const Function &function) {
    for (const Block &block : function.blocks)
      for (const Fact &fact : block.facts)
        if (fact.kind == FactKind::Literal && fact.literal == LiteralKind::String && fact.name.view() == map)
          places.insert(fact.where);
  };
  look(call.frame.function);
  if (places.empty())
    for (const Name id : call.machine.program.order)
      if (const Function &function = *call.machine.program.function(id); function.isModel)
        look(function);
  const Location &where = call.fact.where;
  const bool isOne =
      places.size() == 1 && !(where.line <= places.begin()->line && places.begin()->line <= where.endLine &&
                              places.begin()->file == where.file);
  return isOne ? *places.begin() : Location();
}

// An index over all devices, whatever the rank: `i % device_count()`, `i / layersPerDevice`. The plain round
// of a loop is none: one process that drives all devices keeps a copy of the model on each.
bool isGlobalIndex(Term index) {
  const bool folds = applies(index, "%") || applies(index, "/");
  const bool isSpread = contains(index, countTerm()) || (folds && dependsOnIteration(index));
  return isSpread && !applies(index, op::rank) && !hasOffset(index);
}

} // namespace

DeviceMaps::DeviceMaps(Machine &machine)
    : machine(machine), loaders(machine), isEnabled(mayInitialise(machine.program, machine.names)) {}

void DeviceMaps::enter(Call &call) {
  active.emplace_back();
  if (libraryPath(call.fact.name.view()) == launchMark)
    launcher = Initialisation{textOfArguments(call).substr(1), call.fact.where};
  if (std::string name = initialiserOf(call); !name.empty())
    noteInitialisation(call, name);
  noteOrigin(call);
  noteSetter(call);
  if (models::effect(call.fact.name.view(), "module_to") && call.fact.hasObject) {
    noteMove(call);
    return;
  }
  const LoaderKind kind = loaders.kindOf(call);
  const bool isProject = !call.fact.target.empty() && machine.program.function(call.fact.target);
  if (kind == LoaderKind::None && !isProject)
    return;
  std::optional<std::string> map = carriedBy(call, kind);
  if (!map)
    return;
  const bool isOuter = std::none_of(active.begin(), active.end(), [&](const Active &outer) {
    return outer.carriesMap && outer.kind >= kind;
  });
  active.back() = {true, kind, call.fact.kind == FactKind::Construct ? call.fact.type : call.fact.target};
  if (kind == LoaderKind::None || !isOuter)
    return;
  for (const Active &outer : active)
    if (outer.kind != LoaderKind::None && outer.kind < kind)
      aroundLoaders.insert(outer.callee);
  noteMap(call, *map, kind);
}

// Where a map was put under its key: an assignment, or the text of a configuration.
void DeviceMaps::noteOrigin(const Call &call) {
  const std::string_view name = call.fact.name.view();
  Step step;
  step.kind = StepKind::Stored;
  step.where = call.fact.where;
  if (isAssignment(name) && call.fact.operands.size() == 2) {
    const Address where = call.objectAddress();
    step.subject = call.fact.operands[0].text.str();
    const bool isKey = (where.path && isDeviceMapKey(keyOfField(where.path->field.view()))) ||
                       !mapInText(step.subject + "=auto").empty();
    std::optional<std::string> map = isKey ? spreadOf(call, call.arg(0), bounds::mapNesting) : std::nullopt;
    if (!map)
      return;
    step.device = *map;
    origins[*map] = step;
  } else if (models::effect(name, "json_parse")) {
    step.device = mapInText(textOfArguments(call));
    step.subject = deviceMapKey;
    if (!step.device.empty())
      origins[step.device] = step;
  }
}

// What `set_device_map(x)` is given belongs to its object, whatever the field is called that keeps it.
void DeviceMaps::noteSetter(Call &call) {
  if (!call.fact.hasObject || call.argCount() != 1 || !isDeviceMapSetter(lastPart(call.fact.name.view())))
    return;
  if (const Address object = call.objectAddress(); object.valid())
    machine.memory.write(call.row, object.field(entryField(deviceMapKey)), call.arg(0));
}

// A notebook is one process: what a package does for a launcher, it does not do there.
void DeviceMaps::noteInitialisation(Call &call, const std::string &name) {
  if (isNotebook(entryOf(call.frame).function.where.file.view()) &&
      !isNotebook(call.fact.where.file.view()) && !launcher)
    return;
  const std::string key = keyOf(name, call.fact.where);
  initialisations.emplace(key, launcher ? *launcher : Initialisation{name, call.fact.where});
  initialising.insert(call.frame.function.id);
  // A record, for rows that differ in scalars only are merged.
  call.row.store.set(initialisedRoot(machine), recordValue(Name(key)));
  if (Value maps = call.row.store.get(mapsRoot(machine)))
    for (auto &[where, candidate] : candidates)
      if (maps->fields.count(keyOf({}, where)) && candidate.initialiser.empty())
        candidate.initialiser = key;
}

DeviceMaps::Candidate &DeviceMaps::candidateAt(Call &call) {
  Candidate &candidate = candidates[call.fact.where];
  candidate.finding.where = call.fact.where;
  std::set<Name> stack;
  for (const Frame *frame = &call.frame; frame; frame = frame->caller)
    stack.insert(frame->function.id);
  if (isWithin(candidate.stacks.size() + 1, bounds::stacksOfMap, Bound::StacksOfMap))
    candidate.stacks.push_back(std::move(stack));
  return candidate;
}

// The row remembers the map, and the candidate whether the row was distributed already.
void DeviceMaps::meet(Call &call, Candidate &candidate) {
  Value maps = call.row.store.get(mapsRoot(machine));
  const Name mark(keyOf({}, call.fact.where));
  call.row.store.set(mapsRoot(machine),
                     withField(maps && is(maps, ValueKind::Record) ? maps : recordValue({}), mark,
                               scalarValue(textTerm(mark))));
  Value initialised = call.row.store.get(initialisedRoot(machine));
  if (!initialised || !candidate.initialiser.empty())
    return;
  const bool isOne = is(initialised, ValueKind::Record) && initialisations.count(initialised->type.str());
  candidate.initialiser = isOne ? initialised->type.str() : initialisations.begin()->first;
}

void DeviceMaps::noteMap(Call &call, const std::string &map, LoaderKind kind) {
  Candidate &candidate = candidateAt(call);
  candidate.kind = kind;
  candidate.isLate = isLateBound(call.fact);
  candidate.callee = call.fact.kind == FactKind::Construct ? call.fact.type : call.fact.target;
  candidate.finding.map = map;
  candidate.finding.loader = Loaders::nameOf(call);
  auto origin = origins.find(map);
  if (origin != origins.end() && candidate.finding.origin.empty())
    candidate.finding.origin = {origin->second};
  if (candidate.isLate && candidate.finding.origin.empty())
    if (const Location where = placeOf(call, map); where.valid()) {
      Step step;
      step.kind = StepKind::Stored;
      step.where = where;
      step.subject = deviceMapKey;
      step.device = map;
      candidate.finding.origin = {step};
    }
  meet(call, candidate);
}

// A layer moved to a device of the whole machine's range, on behalf of no device_map.
void DeviceMaps::noteMove(Call &call) {
  if (std::any_of(active.begin(), active.end(), [](const Active &outer) { return outer.carriesMap; }))
    return;
  std::optional<Placement> target;
  for (std::size_t i = 0; i < call.argCount() && !target; ++i)
    if (Value value = call.arg(i); is(value, ValueKind::Device) || is(value, ValueKind::Options))
      target = deviceOf(machine.memory, call.row, value);
  if (!target || target->kind != PlacementKind::Cuda || !target->index)
    return;
  const Term index = call.row.resolve(target->index);
  const bool isConstant = constantOf(index).has_value();
  if (!isConstant && !isGlobalIndex(index))
    return;
  std::set<Term> &indices = movedTo[call.fact.where];
  indices.insert(index);
  const bool anyGlobal =
      std::any_of(indices.begin(), indices.end(), [](Term term) { return !constantOf(term); });
  bool spreads = anyGlobal && (indices.size() > 1 || dependsOnIteration(index));
  bool isLiteral = false;
  if (isConstant) {
    // Two modules on two devices that are written out, at two places of one function.
    std::vector<LiteralMove> &moves = literalMoves[call.frame.function.id];
    const Address module = call.objectAddress();
    isLiteral = std::any_of(moves.begin(), moves.end(), [&](const LiteralMove &move) {
      return move.where < call.fact.where && move.index != index && !(move.module == module);
    });
    moves.push_back({call.fact.where, index, module});
    spreads |= isLiteral;
  }
  if (!spreads)
    return;
  Candidate &candidate = candidateAt(call);
  candidate.isPlacement = true;
  candidate.isLiteral = isLiteral;
  candidate.kind = LoaderKind::Strong;
  candidate.finding.map = target->text.empty() ? target->describe() : target->text.str();
  std::string loader = call.fact.operands[0].text.str();
  while (!loader.empty() &&
         (loader.back() == '>' || loader.back() == '-')) // the text of a holder's operator->
    loader.pop_back();
  candidate.finding.loader = loader;
  meet(call, candidate);
}

std::optional<std::string> DeviceMaps::carriedBy(const Call &call, LoaderKind kind) const {
  const std::string_view name = call.fact.name.view();
  if (runsPython(name) || startsProgram(name, machine.names)) {
    const std::string text = textOfArguments(call);
    std::string map = mapInText(runsPython(name) ? withoutComments(text) : text);
    return map.empty() ? std::nullopt : std::optional<std::string>(map);
  }
  const Function *callee = call.fact.target.empty() ? nullptr : machine.program.function(call.fact.target);
  for (std::size_t i = 0; i < call.argCount(); ++i) {
    Value value = call.arg(i);
    const std::size_t at = call.first + i;
    const bool isParameter =
        (callee && i < callee->paramCount && isDeviceMapKey(callee->locals[i].name.view())) ||
        (isLateBound(call.fact) && at < call.fact.captures.size() &&
         isDeviceMapKey(call.fact.captures[at].view()));
    if (isParameter || isDeviceMapKey(call.fact.operands[call.first + i].text.view()))
      if (std::optional<std::string> map = spreadOf(call, value, bounds::mapNesting))
        return map;
    if (std::optional<std::string> map = mapIn(call, value, bounds::mapNesting))
      return map;
  }
  if (call.fact.hasObject && kind != LoaderKind::None && pythonCallee(call).empty())
    if (std::optional<std::string> map = mapIn(call, call.object(), bounds::mapNesting))
      return map;
  return std::nullopt;
}

// The spread map in a value that carries options: a field or entry with such a name, or text that assigns
// one.
std::optional<std::string> DeviceMaps::mapIn(const Call &call, const Value &value, int depth) const {
  if (!canDescend(depth, Bound::MapNesting))
    return std::nullopt;
  switch (value->kind) {
  case ValueKind::Address:
    return mapIn(call, machine.memory.read(call.row, value->address), depth - 1);
  case ValueKind::Record:
    if (machine.types.isModule(value->type))
      return std::nullopt;
    if (const Value key = keyOfPair(value); is(key, ValueKind::Scalar))
      if (isDeviceMapKey(textOfTerm(call.row.resolve(key->term))))
        return spreadOf(call, entryValue(value), depth);
    for (const auto &[name, field] : value->fields) {
      if (hidden::isHidden(name))
        continue;
      const bool isMap = isDeviceMapKey(keyOfField(name.view()));
      std::optional<std::string> map =
          isMap ? spreadOf(call, entryValue(field), depth) : mapIn(call, entryValue(field), depth - 1);
      if (map)
        return map;
    }
    return std::nullopt;
  case ValueKind::List: {
    std::string text;
    for (const Value &element : value->elements) {
      if (is(element, ValueKind::Scalar))
        text += textOfTerm(call.row.resolve(element->term)) + ' ';
      else if (std::optional<std::string> map = mapIn(call, element, depth - 1))
        return map;
    }
    std::string map = mapInText(text);
    return map.empty() ? std::nullopt : std::optional<std::string>(map);
  }
  case ValueKind::Scalar: {
    std::string map = mapInText(textOfTerm(call.row.resolve(value->term)));
    return map.empty() ? std::nullopt : std::optional<std::string>(map);
  }
  default:
    return std::nullopt;
  }
}

// Does the value of an entry change from entry to entry, and not with the rank?
bool DeviceMaps::differsByEntry(const Call &call, const Value &value) const {
  Term term = nullptr;
  if (is(value, ValueKind::Scalar))
    term = call.row.resolve(value->term);
  else if (is(value, ValueKind::Device) && value->placement.kind == PlacementKind::Cuda)
    term = call.row.resolve(value->placement.index);
  return term && dependsOnIteration(term) && !applies(term, op::rank);
}

// What a value under a device_map key spreads the model over; nothing for no map and for a map of one entry.
std::optional<std::string> DeviceMaps::spreadOf(const Call &call, const Value &value, int depth) const {
  if (!canDescend(depth, Bound::MapNesting))
    return std::nullopt;
  auto entries = [](std::size_t count) { return "{" + std::to_string(count) + " entries}"; };
  auto isOfRank = [&](const Value &entry) {
    return is(entry, ValueKind::Scalar) && applies(call.row.resolve(entry->term), op::rank);
  };
  switch (value->kind) {
  case ValueKind::Address:
    return spreadOf(call, machine.memory.read(call.row, value->address), depth - 1);
  case ValueKind::Scalar: {
    std::optional<Name> text = textOf(call.row.resolve(value->term));
    if (text && isSpreadWord(text->view()))
      return text->str();
    const std::size_t count = text ? entriesOf(text->view()) : 0;
    return count > 1 ? std::optional<std::string>(entries(count)) : std::nullopt;
  }
  case ValueKind::Record: {
    std::size_t count = 0, ofRank = 0;
    for (const auto &[name, entry] : value->fields)
      if (isEntry(name.view())) {
        ++count;
        ofRank += isOfRank(entryValue(entry));
      }
    auto any = value->fields.find(hidden::anyKey);
    const Value each = any == value->fields.end() ? nullValue() : entryValue(any->second);
    if (any != value->fields.end() && !isOfRank(each) && (count > 0 || differsByEntry(call, each)))
      return "{one entry per layer}";
    return count > 1 && ofRank < count ? std::optional<std::string>(entries(count)) : std::nullopt;
  }
  case ValueKind::List: {
    if (isSummary(value))
      return differsByEntry(call, value->summary[0]) ? std::optional<std::string>("{one entry per layer}")
                                                     : std::nullopt;
    const bool alike = std::all_of(value->elements.begin(), value->elements.end(), [&](const Value &element) {
      return same(element, value->elements[0]) || isOfRank(element);
    });
    return alike ? std::nullopt : std::optional<std::string>(entries(value->elements.size()));
  }
  default:
    return std::nullopt;
  }
}

// Functions that initialise distributed training, themselves or in what they call.
std::set<Name> DeviceMaps::functionsThatInitialise() const {
  std::map<Name, std::vector<Name>> callers;
  for (Name id : machine.program.order)
    for (const Block &block : machine.program.function(id)->blocks)
      for (const Fact &fact : block.facts)
        if (!fact.target.empty())
          callers[fact.target].push_back(id);
  std::set<Name> result = initialising;
  std::vector<Name> work(result.begin(), result.end());
  while (!work.empty()) {
    const Name id = work.back();
    work.pop_back();
    for (Name caller : callers[id])
      if (result.insert(caller).second)
        work.push_back(caller);
  }
  return result;
}

// A map and an initialisation that no run of one function brings together are in different functions of the
// program; where one function leads to both but never in one row, it keeps them apart on purpose.
bool DeviceMaps::isReported(const Candidate &candidate, const std::set<Name> &initialisers) const {
  if (candidate.kind != LoaderKind::Known && aroundLoaders.count(candidate.callee))
    return false;
  if (!candidate.initialiser.empty())
    return true;
  if (initialisations.empty() || candidate.isLiteral || candidate.isLate)
    return false;
  // Without a main the program is a library, of which no run comes to both.
  if (!machine.usage.hasMain)
    return false;
  return std::any_of(candidate.stacks.begin(), candidate.stacks.end(), [&](const std::set<Name> &stack) {
    return std::none_of(stack.begin(), stack.end(), [&](Name id) { return initialisers.count(id) != 0; });
  });
}

std::vector<MapUnderDistributed> DeviceMaps::findings() const {
  std::vector<MapUnderDistributed> result;
  const std::set<Name> initialisers = functionsThatInitialise();
  std::set<std::string> loaded; // maps that reach a loader for sure
  for (const auto &[where, candidate] : candidates)
    if (candidate.kind > LoaderKind::Weak && isReported(candidate, initialisers))
      loaded.insert(candidate.finding.map);
  for (const auto &[where, candidate] : candidates) {
    if (!isReported(candidate, initialisers))
      continue;
    // A trainer that is made from all options and hands them to the loader later.
    if (candidate.kind == LoaderKind::Weak && loaded.count(candidate.finding.map))
      continue;
    MapUnderDistributed finding = candidate.finding;
    const bool isMet = !candidate.initialiser.empty();
    finding.level = isMet && !candidate.isPlacement ? Level::Definite : Level::Likely;
    const Initialisation &initialisation =
        isMet ? initialisations.at(candidate.initialiser) : initialisations.begin()->second;
    finding.initialised = initialisation.where;
    finding.initialiser = initialisation.name;
    result.push_back(std::move(finding));
  }
  return result;
}

} // namespace devicetidy
