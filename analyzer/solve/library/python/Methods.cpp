//===- Methods.cpp - methods of tensors and modules ---===//
#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/HiddenFields.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/library/python/Lists.h"
#include "analyzer/solve/library/python/OpenValues.h"
#include "analyzer/solve/library/torch/Modules.h"

namespace devicetidy::python {

namespace {

// Nothing is known of it, or that it is some object: as a device, it may be any.
bool mayBeAnyDevice(const Value &value) {
  return is(value, ValueKind::Unknown) || is(value, ValueKind::Address) || is(value, ValueKind::Record);
}

// self.device, devices[0], options["device"]
bool isNamedDevice(std::string_view text) {
  const std::size_t index = text.rfind('[');
  for (const std::string_view entry : {"device\"]", "device']"})
    if (endsWith(text, entry))
      return true;
  return endsWith(text, "device") || (index != std::string_view::npos && text.back() == ']' &&
                                      endsWith(text.substr(0, index), "devices"));
}

} // namespace

namespace {

// Is it None because a call says so, or leaves the parameter out? A member may have been set elsewhere.
bool isNoneByCall(const Frame &frame, Name text) {
  const std::vector<Variable> &locals = frame.function.locals;
  const auto end = locals.begin() + frame.function.paramCount;
  const auto parameter =
      std::find_if(locals.begin(), end, [&](const Variable &each) { return each.name == text; });
  if (text == Name("None") || parameter == end || !frame.call || !frame.caller)
    return text == Name("None");
  const auto position = static_cast<std::size_t>(parameter - locals.begin()) + 1; // behind the callee
  for (std::size_t i = 1; i < frame.call->operands.size(); ++i) {
    const std::vector<Name> &names = frame.call->captures;
    const Name keyword = i < names.size() ? names[i] : Name();
    if (startsWith(keyword.view(), "*"))
      return false;
    if (keyword == text || (keyword.empty() && i == position))
      return isNoneByCall(*frame.caller, frame.call->operands[i].text);
  }
  return true;
}

} // namespace

std::vector<Argument> inOrder(const Call &call, const Given &given, bool namesDevices) {
  std::vector<Argument> args = given.positional;
  for (const auto &[keyword, argument] : given.named) {
    if (isOneOf(keyword.view(), {"dtype", "non_blocking", "keepdim", "requires_grad", "memory_format", "copy",
                                 "layout", "generator", "pin_memory", "unbiased", "correction"}))
      continue;
    Argument each = argument;
    if (keyword.view() == "device") {
      const Value device = asChosenDevice(each.value);
      each.value = mayBeAnyDevice(device) ? deviceValue(Placement::unknown()) : asDevice(call, device);
    }
    args.push_back(std::move(each));
  }
  if (namesDevices && args.empty() && given.isOpen) // to(*args, **kwargs): what a caller passes
    args.push_back({given.rest ? asChosenDevice(given.rest) : deviceIn(call, call.row, given.namedRest), {}});
  for (Argument &each : args)
    if (namesDevices && (isNamedDevice(each.text.view()) ||
                         (isOpen(each.value) && isNamedDevice(each.value->function.view()))))
      each.value = asChosenDevice(each.value);
  // What is not known may name any device, unless it is called a dtype; a variable that is None, too: who
  // moves to it means that it has been set.
  for (Argument &each : args) {
    const bool isUnset = is(each.value, ValueKind::Null) && !isNoneByCall(call.frame, each.text);
    if (namesDevices && (mayBeAnyDevice(each.value) || isUnset) &&
        each.text.view().find("dtype") == std::string_view::npos)
      each.value = deviceValue(Placement::unknown());
  }
  if (namesDevices)
    for (Argument &each : args)
      if (is(each.value, ValueKind::Scalar) && (textOf(call, each.value) || &each == &args.front())) {
        each.value = asDevice(call, each.value);
        const bool isOpen = is(each.value, ValueKind::Scalar) &&
                            !constantOf(call.row.resolve(each.value->term)) && !textOf(call, each.value);
        if (isOpen) // a text or a number that may be any
          each.value = deviceValue(Placement::unknown());
      }
  return args;
}

// `x.argmax(-1).cpu()` waits for the GPU: what a call gives has no name to go on with.
void noteDiscarded(Call &call, const Argument &object, const std::string &name) {
  using models::Rule;
  const models::Op *op = call.fact.isDiscarded ? models::atenOp(name, call.machine.version) : nullptr;
  if (!op || (op->rule != Rule::Move && op->rule != Rule::ToCpu && op->rule != Rule::ToCuda) ||
      endsWith(object.text.view(), ")"))
    return;
  const std::string text = object.text.str();
  for (const DiscardedMove &known : call.machine.discarded)
    if (known.where == call.fact.where)
      return;
  call.machine.discarded.push_back(
      {call.fact.where, text, name, text + "." + name + "(...)", false, false, call.frame.function.id.str()});
}

namespace {

// What a method of a module gives back is the module, for those that work in place.
bool givesSelf(const std::string &name) {
  return isOneOf(name, {"to", "cuda", "cpu", "float", "half", "double", "bfloat16", "train", "eval",
                        "requires_grad_", "apply", "type", "to_empty", "share_memory", "xpu"});
}

} // namespace

bool isMethodOfTensors(const Machine &machine, const std::string &name) {
  static const std::set<std::string> others = {"long", "int",  "short",   "bool",
                                               "byte", "char", "view_as", "reshape_as"};
  return others.count(name) || (models::atenOp(name, machine.version) && name != "requires_grad_");
}

Outcomes callTensorMethod(Call &call, Row row, const Argument &object, std::string name, const Given &given) {
  if (endsWith(name, "_") && object.address.valid() && numberIn(object.value))
    call.machine.memory.write(row, object.address, withoutNumber(object.value));

  std::vector<Argument> args = inOrder(call, given, name == "to" || name == "cuda");
  if (name == "cuda" && !args.empty()) {
    args[0].value = asGpu(call, args[0].value);
    args.insert(args.begin(), object);
    return callTorch(call, std::move(row), "at::Tensor::to", args, true);
  }
  if (isOneOf(name, {"float", "half", "double", "long", "int", "short", "bool", "byte", "char", "bfloat16",
                     "requires_grad_", "retain_grad", "view_as", "reshape_as"}))
    return callTorch(call, std::move(row), "at::Tensor::to", {object}, true);
  if (name == "type") { // of a class of tensors, or as its name, which says where they are
    const Value asked = given.positional.empty() ? unknownValue() : given.positional[0].value;
    const std::string type =
        is(asked, ValueKind::Function) ? asked->type.str() : textOf(call, asked).value_or("");
    const Placement now = call.machine.memory.placementOf(row, object.value);
    if (given.positional.empty())
      return done(row, now.kind == PlacementKind::Cuda  ? libraryFunction("torch.cuda.FloatTensor")
                       : now.kind == PlacementKind::Cpu ? libraryFunction("torch.FloatTensor")
                                                        : deviceValue(now)); // which it says, too
    std::vector<Argument> moved{object};
    if (!given.positional.empty() && is(given.positional[0].value, ValueKind::Device))
      moved.push_back(given.positional[0]);
    if (endsWith(type, "Tensor"))
      moved.push_back({deviceValue(startsWith(type, "torch.cuda") ? Placement::cuda(currentCudaIndex())
                                                                  : Placement::cpu()),
                       {}});
    return callTorch(call, std::move(row), "at::Tensor::to", moved, true);
  }
  if (name == "unique")
    name = "_unique2";
  if (name == "dim" || name == "ndimension")
    if (const Term dimensions = dimensionsOf(object.value); dimensions && isOpenRank(object.value->rank))
      return done(row, scalarValue(row.resolve(dimensions)));
  if (name == "new_tensor")
    name = "new_ones";
  if (name == "backward" && !given.positional.empty() && is(given.positional[0].value, ValueKind::Tensor))
    return callTorch(call, std::move(row), "at::Tensor::backward", {object, given.positional[0]}, true);
  if (name == "numpy" || name == "tolist" || name == "__array__") {
    if (name == "tolist") // of a tensor without dimensions it is a number
      return done(row, call.machine.memory.rankOf(row, object.value) == 0
                           ? unknownValue()
                           : allocated(call, row, "python::list", summaryOf({unknownValue()})));
    Outcomes outcomes = callTorch(call, std::move(row), "at::Tensor::numpy", {object}, true, {});
    for (Outcome &outcome : outcomes)
      if (const int rank = call.machine.memory.rankOf(outcome.row, object.value);
          rank > 0 || rank == someRank)
        outcome.result = allocated(call, outcome.row, arrayType, recordValue(arrayType));
    return outcomes;
  }
  args.insert(args.begin(), object);
  const bool hasDim = !given.positional.empty() || given.find("dim");
  Outcomes outcomes =
      callTorch(call, std::move(row), "at::Tensor::" + name, args, true, resultTypeOf(name, args, hasDim));
  meetGenerator(call, outcomes, given, name);
  return outcomes;
}

namespace {

// The modules of one, and their names: keys(), values(), items() of a ModuleDict.
std::vector<Value> namedChildren(const Value &record, const std::string &what) {
  std::vector<Value> all;
  for (const auto &[field, child] : record->fields)
    if (hidden::isSubmodule(field)) {
      const Value key = scalarValue(textTerm(Name(field.view().substr(hidden::submodulePrefix.size()))));
      all.push_back(what == "keys" ? key : what == "values" ? child : tupleValue({key, child}));
    }
  return all;
}

// get_submodule("blocks.0"), get_parameter("blocks.0.weight")
Value registeredAt(const Call &call, const Row &row, const Address &self, const std::string &method,
                   const Given &given) {
  const Argument *asked = given.find("target", 0);
  const auto path = asked ? textOf(call, asked->value) : std::nullopt;
  if (!path)
    return unknownValue();
  if (method == "get_submodule") {
    const Address found = submoduleAt(call.machine, row, self, *path);
    return found.valid() ? addressValue(found) : unknownValue();
  }
  for (const RegisteredTensor &each : registeredTensors(call.machine, row, self))
    if (each.path == path)
      return each.handle;
  return unknownValue();
}

// The entries of state_dict(), where there are a few and all names are known; null otherwise.
Value tensorsByName(const Call &call, const Row &row, const Address &self) {
  const std::vector<RegisteredTensor> tensors = registeredTensors(call.machine, row, self);
  std::map<Name, Value> entries;
  for (const RegisteredTensor &each : tensors)
    if (each.path)
      entries[Name("[" + *each.path + "]")] = call.machine.memory.snapshot(row, each.handle);
  const bool isWhole = !tensors.empty() && entries.size() == tensors.size() &&
                       tensors.size() <= bounds::knownElements &&
                       !call.machine.memory.read(row, self)->origin;
  return isWhole ? recordValue(dictType, std::move(entries)) : nullptr;
}

// Where all tensors of a dictionary are; unknown when they are in several places.
Placement placementOfEntries(const Call &call, const Row &row, const Given &given) {
  const Value dict = given.positional.empty() ? unknownValue() : behind(call, given.positional[0].value);
  std::optional<Placement> common;
  if (isDict(dict))
    for (const Name field : fieldsInOrder(dict)) {
      const Value &entry = dict->fields.at(field);
      const Placement place = call.machine.memory.placementOf(row, entry);
      if (!is(entry, ValueKind::Tensor) || (common && *common != place))
        return Placement::unknown();
      common = place;
    }
  return common.value_or(Placement::unknown());
}

// eval() and train(): so are all that are registered in it.
void setTraining(const Machine &machine, Row &row, const Address &module, const Value &mode,
                 std::set<std::pair<RootId, Path>> &seen) {
  const Value record = machine.memory.read(row, module);
  if (!is(record, ValueKind::Record) || !machine.types.isModule(record->type) ||
      !seen.insert({module.root, module.path}).second)
    return;
  machine.memory.write(row, module.field("training"), mode);
  for (const auto &[name, field] : record->fields)
    if (hidden::isSubmodule(name) || name == hidden::children)
      forEachAddress(field, [&](const Address &part) { setTraining(machine, row, part, mode, seen); });
}

} // namespace

Outcomes callModuleMethod(Call &call, Row row, const Argument &object, Name type, const std::string &name,
                          const Given &given) {
  Machine &machine = call.machine;
  const Address self = object.value->address;
  if (const Name library = libraryModule(machine, type); !library.empty())
    type = library;
  if (name == "register_buffer" || name == "register_parameter") {
    const Argument *tensor = given.find(name == "register_buffer" ? "tensor" : "param", 1),
                   *as = given.find("name", 0);
    const std::optional<std::string> field = as ? textOf(call, as->value) : std::nullopt;
    if (!tensor || !as)
      return done(row, nullValue());
    const std::string cell = field.value_or(std::string(madeAtLine) + std::to_string(call.fact.where.line));
    Call inner{machine, call.frame, row, call.fact, call.first};
    std::vector<Argument> args{object,
                               {as->value, {}, as->text, as->written},
                               {asTensor(inner, tensor->value), {}, tensor->text, tensor->written}};
    Outcomes outcomes = callTorch(inner, row, "torch::nn::Module::register_parameter", args, true);
    for (Outcome &outcome : outcomes) {
      if (field)
        machine.memory.write(outcome.row, self.field(Name(*field)), outcome.result);
      if (name == "register_buffer")
        machine.memory.write(outcome.row, self.field(Name(bufferMark + cell)), scalarValue(intTerm(1)));
    }
    return outcomes;
  }
  if (const Value record = machine.memory.read(row, self);
      (isOneOf(name, {"keys", "values", "items"}) &&
       machine.types.derivesFrom(type, "torch::nn::ModuleDictImpl")) ||
      (name == "named_children" && is(record, ValueKind::Record) && !record->origin))
    return done(row, listOf(call, row, namedChildren(record, name)));
  if (name == "load_state_dict" && given.find("assign")) { // the tensors themselves, wherever they are
    moveModule(machine, row, self, placementOfEntries(call, row, given), nullptr);
    return done(row, unknownValue());
  }
  if (isOneOf(name, {"get_submodule", "get_parameter", "get_buffer"}))
    return done(row, registeredAt(call, row, self, name, given));
  if (name == "state_dict") {
    if (const Value named = tensorsByName(call, row, self))
      return done(row, allocated(call, row, dictType, named));
    const Placement where = modulePlacement(machine, row, self);
    // Of some buffers the tensor is a number, but not of all entries.
    const Value tensor = where.isKnown() ? tensorValue(where, someRank, nullptr) : unknownValue();
    return done(row, allocated(call, row, dictType, recordValue(dictType, {{anyEntryField, tensor}})));
  }
  if (isOneOf(name, {"eval", "train"})) {
    const Argument *mode = given.find("mode", 0);
    std::set<std::pair<RootId, Path>> seen;
    setTraining(machine, row, self,
                mode && name == "train" ? mode->value : scalarValue(intTerm(name == "train")), seen);
  }
  if (isOneOf(name, {"register_forward_hook", "register_forward_pre_hook"}) && !given.positional.empty())
    return addHook(call, std::move(row), self, name == "register_forward_pre_hook", given);
  if (isOneOf(name, {"add_module", "register_module"}) && given.positional.size() > 1) {
    const auto field = textOf(call, given.positional[0].value);
    const Value child = given.positional[1].value;
    if (machine.types.derivesFrom(type, "torch::nn::SequentialImpl") && is(child, ValueKind::Address)) {
      Call inner{machine, call.frame, row, call.fact, call.first}; // it runs what is registered
      appendChild(inner, self, child->address, field.value_or(std::string()));
      return done(row, nullValue());
    }
    Outcomes outcomes = callTorch(call, std::move(row), "torch::nn::Module::register_module",
                                  {object, given.positional[0], given.positional[1]}, true);
    if (field)
      for (Outcome &outcome : outcomes)
        machine.memory.write(outcome.row, self.field(Name(*field)), given.positional[1].value);
    return outcomes;
  }
  if (isOneOf(name, {"append", "extend", "insert"}) && !given.positional.empty()) {
    const Value child = given.positional.back().value;
    std::vector<Value> children{child};
    if (const Value list = behind(call, child); name == "extend" && is(list, ValueKind::List)) {
      children = list->elements;
      appendSome(call, row, self, list);
    }
    for (const Value &each : children)
      if (is(each, ValueKind::Address)) {
        Call inner{machine, call.frame, row, call.fact, call.first};
        appendChild(inner, self, each->address, "");
      } else if (is(each, ValueKind::Tensor)) { // of a ParameterList
        registerEntry(call, row, self, anyEntryField, each);
      }
    return done(row, object.value);
  }
  std::vector<Argument> args = inOrder(call, given, name == "to" || name == "cuda" || name == "to_empty");
  if (name == "to" && !args.empty() && is(args[0].value, ValueKind::Tensor)) // to(tensor)
    args[0].value = deviceValue(machine.memory.placementOf(row, args[0].value));
  std::string asked = name;
  if (name == "cuda" || name == "cpu" || name == "to_empty" || name == "xpu") {
    asked = "to";
    if (name == "cuda" && !args.empty())
      args[0].value = asGpu(call, args[0].value);
    else if (name == "cuda" || name == "cpu")
      args = {{deviceValue(name == "cpu" ? Placement::cpu() : Placement::cuda(currentCudaIndex())), {}}};
  }
  const bool isForward = name == "forward" || name == "__call__";
  if (isForward && type == Name("torch::nn::Module"))
    return callUnknownModule(call, std::move(row), given);
  if (isForward && !machine.types.derivesFrom(type, "torch::nn::SequentialImpl"))
    for (Argument &arg : args) { // layers take tensors
      if (isOpen(arg.value))
        row.assume(isTensorQuestion(arg.value)->term, 1);
      arg.value = asTensor(call, arg.value);
    }
  args.insert(args.begin(), object);
  const std::string scope = isForward ? type.str() : "torch::nn::Module";
  Outcomes outcomes =
      callTorch(call, std::move(row), scope + "::" + asked, args, true,
                isForward && isOneOf(type.view(), {"torch::nn::LSTMImpl"})
                    ? Name("std::tuple<at::Tensor, std::tuple<at::Tensor, at::Tensor>>")
                : isForward && isOneOf(type.view(), {"torch::nn::GRUImpl", "torch::nn::RNNImpl",
                                                     "torch::nn::MultiheadAttentionImpl"})
                    ? Name("std::tuple<at::Tensor, at::Tensor>")
                : isForward ? Name("at::Tensor")
                            : Name("std::vector<at::Tensor>"));
  if (givesSelf(name))
    for (Outcome &outcome : outcomes)
      outcome.result = object.value;
  return outcomes;
}

} // namespace devicetidy::python
