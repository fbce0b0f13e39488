#include "analyzer/solve/library/python/Groups.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/engine/Backends.h"
#include "analyzer/solve/engine/Operators.h"
#include "analyzer/solve/engine/Purpose.h"
#include "analyzer/solve/library/python/Lists.h"
#include "analyzer/solve/library/torch/RankDevices.h"

#include <algorithm>

namespace devicetidy::python {
namespace {

const Name joinedType("@ranks joined"), backendField("backend"), sureField("is sure");
constexpr int nesting = 4;             ///< of collections that are exchanged
constexpr std::size_t mostTensors = 8; ///< of one collective that are looked at

RootId joinedRoot(const Call &call) { return call.machine.memory.global(joinedType, {}, {}); }

Value openBackend() { return scalarValue(symbolTerm("the backend of the ranks")); }

void join(const Call &call, Row &row, const Value &backend, bool isSure) {
  row.store.set(joinedRoot(call), recordValue(joinedType, {{backendField, backend},
                                                           {sureField, scalarValue(intTerm(isSure))}}));
}

Value joined(const Call &call, const Row &row) {
  const Value value = row.store.get(joinedRoot(call));
  return value && is(value, ValueKind::Record) && value->type == joinedType ? value : nullptr;
}

// Null: none was named, and each tensor has the one for its device.
Value backendOf(const Call &call, const Row &row) {
  const Value ranks = joined(call, row);
  const Value backend = ranks ? ranks->fields.at(backendField) : nullptr;
  return backend && (is(backend, ValueKind::Scalar) || is(backend, ValueKind::Null)) ? backend
                                                                                     : openBackend();
}

// What the row knows of "the backend is `name`".
std::optional<bool> isNamed(const Row &row, const Value &backend, const char *name) {
  const Value asked = operatorValue(row, op::equal, {backend, scalarValue(textTerm(name))}, true);
  const auto answer = is(asked, ValueKind::Scalar) ? constantOf(row.resolve(asked->term)) : std::nullopt;
  return answer ? std::optional(*answer == 1) : std::nullopt;
}

// How sure it is that `backend` takes no tensor on the CPU; nothing where it may well.
std::optional<Level> levelOf(const Call &call, const Row &row, const Value &backend, bool isSure) {
  if (!is(backend, ValueKind::Scalar)) // None
    return std::nullopt;
  if (row.numberOf(scalarValue(availableTerm())) == 0) // NCCL needs GPUs
    return std::nullopt;
  const Level known = isSure ? Level::Definite : Level::Likely;
  if (const auto text = textOf(call, backend)) {
    const Backends named = backendsIn(*text);
    return named.forGpus && !named.forCpu ? std::optional(known) : std::nullopt;
  }
  const std::optional<bool> isNccl = isNamed(row, backend, "nccl");
  if (isNccl == false || isNamed(row, backend, "gloo") == true)
    return std::nullopt;
  if (isNccl == true)
    return known;
  const Backends &named = call.machine.usage.backends;
  if (named.forGpus)
    return Level::Likely;
  if (named.forCpu)
    return std::nullopt;
  return isMeantForDevices(call) ? Level::Likely : Level::Latent;
}

// Of the group that a collective is given.
std::optional<Level> levelOfGroup(Call &call, const Row &row, const Value &group) {
  const Value held = behind(call, group);
  const bool isWorld = is(group, ValueKind::Null) ||
                       (is(group, ValueKind::Function) && endsWith(group->type.view(), ".WORLD"));
  const Value ranks = joined(call, row);
  if (isWorld)
    return levelOf(call, row, backendOf(call, row),
                   ranks && row.numberOf(ranks->fields.at(sureField)).value_or(0) == 1);
  if (const auto own = held->fields.find(backendField); own != held->fields.end())
    return levelOf(call, row, own->second, true);
  const std::optional<Level> level = levelOf(call, row, backendOf(call, row), false);
  return level ? std::optional(Level::Latent) : std::nullopt; // a group may have any backend
}

void addTensors(const Call &call, const Row &row, const Value &value, int depth,
                std::vector<Value> &tensors) {
  if (is(value, ValueKind::Tensor) && tensors.size() < mostTensors)
    tensors.push_back(value);
  const Value held = is(value, ValueKind::Address) ? call.machine.memory.read(row, value->address) : value;
  if (depth == 0 || is(value, ValueKind::Tensor))
    return;
  if (is(held, ValueKind::List))
    for (const auto *parts : {&held->elements, &held->summary})
      for (const Value &each : *parts)
        addTensors(call, row, each, depth - 1, tensors);
  if (isDict(held))
    for (const auto &[field, entry] : held->fields)
      if (isEntry(field))
        addTensors(call, row, entry, depth - 1, tensors);
}

// What the user has written for a parameter of the model that runs; null where the model was called by
// another one.
const Operand *writtenFor(const Call &call, Name parameter) {
  const Fact *site = call.frame.site;
  const Function &model = call.frame.function;
  if (!site || !call.frame.caller || call.frame.caller->site)
    return nullptr;
  const auto found = std::find(site->captures.begin(), site->captures.end(), parameter);
  if (found != site->captures.end())
    return &site->operands[static_cast<std::size_t>(found - site->captures.begin())];
  for (std::uint32_t i = 0; i < model.paramCount; ++i)
    if (model.locals[i].name == parameter && i + 1 < site->operands.size())
      return &site->operands[i + 1]; // behind the callee, or the object
  return nullptr;
}

// "all_reduce", of dist.all_reduce(..) and of accelerator.gather(..).
std::string operationOf(const Call &call) {
  const Fact &site = call.frame.site ? *call.frame.site : call.fact;
  const std::string_view name =
      site.hasObject || site.operands.empty() ? lastPart(site.name.view()) : site.operands[0].text.view();
  return std::string(name.substr(name.rfind('.') + 1));
}

// Has the code brought it to the CPU on purpose, or made it where it makes all else?
bool isMeant(const Call &call, const Row &row, const Value &tensor) {
  const History history = call.machine.memory.historyOf(row, tensor);
  const Step *step = history ? decidingStep(history) : nullptr;
  return step && (step->isByVariable || (!joined(call, row) && step->kind == StepKind::Moved));
}

// "[self.process_index]" names a rank, whatever it holds.
Term namedRank(std::string_view list) {
  const std::size_t end = list.find_last_not_of("]) ");
  const std::string_view name = list.substr(0, end == std::string_view::npos ? 0 : end + 1);
  return applyTerm(op::rank, {textTerm(Name(name.substr(name.find_last_of(".[( ") + 1)))});
}

void requireGpu(Call &call, const Argument &argument, const Value &tensor, Level level) {
  Machine::Requirement requirement;
  requirement.operation = operationOf(call);
  requirement.kind = ConflictKind::Launch;
  requirement.isSure = level == Level::Definite;
  requirement.isOpen = level == Level::Latent;
  TensorUse use{tensor, writtenFor(call, argument.text)};
  if (!use.operand)
    use.text = "what it exchanges";
  const TensorUse there{tensorValue(Placement::cuda(currentCudaIndex()), someRank, nullptr), nullptr, "NCCL"};
  call.machine.requireSame(call, {use, there}, requirement);
}

} // namespace

Outcomes initProcessGroup(Call &call, Row &row, const Given &given) {
  const Argument *backend = given.find("backend", 0);
  join(call, row, backend ? backend->value : nullValue(), true);
  const auto numberOf = [&](const char *name) {
    const Argument *argument = given.find(name);
    return argument ? row.numberOf(argument->value) : std::nullopt;
  };
  Call inner{call.machine, call.frame, row, call.fact, call.first};
  const bool isOne = numberOf("world_size") == 1 || numberOf("rank"); // a test of one process, most often
  if (!call.frame.site && !isOne && !given.find("device_id") && backend &&
      levelOf(call, row, backendOf(call, row), true) && !isAbsent(row, Placement::cuda(currentCudaIndex())))
    noteRanksJoined(inner, "init_process_group");
  return done(row, nullValue());
}

std::optional<Value> backendNamed(const std::string &dotted) {
  constexpr std::string_view scope = "torch.distributed.Backend.";
  if (!startsWith(dotted, scope))
    return std::nullopt;
  std::string name(dotted.substr(scope.size()));
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return scalarValue(textTerm(Name(name)));
}

bool areRanksJoined(const Call &call, const Row &row) {
  return joined(call, row) || hasRanks(row) || ranksAskedAt(call.machine, row).valid();
}

Value joinRanks(Call &call, Row &row, const Given &given) {
  if (!joined(call, row)) // it takes what the program has joined
    join(call, row, given.positional.empty() ? nullValue() : given.positional[0].value, false);
  return nullValue();
}

Value leaveRanks(Call &call, Row &row, const Given &) {
  row.store.erase(joinedRoot(call));
  return nullValue();
}

Value areJoined(Call &call, Row &row, const Given &) {
  return scalarValue(joined(call, row) ? intTerm(1) : row.resolve(symbolTerm("the ranks are joined")));
}

Value backendOfRanks(Call &call, Row &row, const Given &) {
  const Value backend = backendOf(call, row);
  return is(backend, ValueKind::Scalar) ? backend : unknownValue();
}

Value exchangeTensors(Call &call, Row &row, const Given &given) {
  const Value group = given.positional.empty() ? nullValue() : given.positional[0].value;
  const std::optional<Level> level = levelOfGroup(call, row, group);
  if (!level || isAbsent(row, Placement::cuda(currentCudaIndex())))
    return nullValue();
  Call inner{call.machine, call.frame, row, call.fact, call.first};
  const bool isNccl = isNamed(row, backendOf(call, row), "nccl") == true;
  for (std::size_t i = 1; i < given.positional.size(); ++i) {
    std::vector<Value> tensors;
    addTensors(call, row, given.positional[i].value, nesting, tensors);
    for (const Value &tensor : tensors) {
      if (row.resolve(call.machine.memory.placementOf(row, tensor)).kind != PlacementKind::Cpu)
        continue;
      if (!isMeant(call, row, tensor))
        requireGpu(inner, given.positional[i], tensor, *level);
      else if (isNccl) // a variable may hold the CPU on ways that exchange nothing
        requireGpu(inner, given.positional[i], tensor, Level::Latent);
    }
  }
  return nullValue();
}

Value meetOnGpus(Call &call, Row &row, const Given &given) {
  if (given.positional.empty())
    return nullValue();
  Call inner{call.machine, call.frame, row, call.fact, call.first};
  const Argument &ids = given.positional[0];
  if (is(ids.value, ValueKind::Null)) {
    if (joined(call, row) && levelOf(call, row, backendOf(call, row), true))
      noteHandle(inner, operationOf(call));
    return nullValue();
  }
  noteRankGpu(inner);
  const auto elements = elementsOf(call, ids.value);
  for (const Value &each : elements ? *elements : std::vector<Value>())
    if (is(each, ValueKind::Scalar))
      meetRankIndex(inner, each->term, operationOf(call));
    else if (const Operand *written = writtenFor(call, ids.text); written && is(each, ValueKind::Unknown))
      meetRankIndex(inner, namedRank(written->text.view()), operationOf(call));
  return nullValue();
}

// The GPU that is current from now on has the number that each of `given` stands for.
Value takeOwnGpu(Call &call, Row &row, const Given &given) {
  Call inner{call.machine, call.frame, row, call.fact, call.first};
  noteOwnGpu(inner);
  for (const Argument &rank : given.positional)
    if (is(rank.value, ValueKind::Scalar) && row.currentDevice == currentCudaIndex())
      row.assume(applyTerm(op::equal, {currentCudaIndex(), rank.value->term}), 1);
  return nullValue();
}

Value rankIn(Call &call, Row &row, const Given &given) {
  const auto variable = given.positional.empty() ? std::nullopt : textOf(call, given.positional[0].value);
  Call inner{call.machine, call.frame, row, call.fact, call.first};
  if (variable && isGlobalRank(*variable))
    noteGlobalRank(inner);
  return variable ? scalarValue(applyTerm(op::rank, {textTerm(Name(*variable))})) : unknownValue();
}

} // namespace devicetidy::python
