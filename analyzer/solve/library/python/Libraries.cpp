//===- Libraries.cpp - functions of libraries by their dotted names ---===//
//
// Names of libraries are those of Python; what LibTorch has too is asked of its models.
//
//===----------------------------------------------------------------------===//
#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/Options.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/library/python/Groups.h"
#include "analyzer/solve/library/python/Lists.h"
#include "analyzer/solve/library/python/OpenValues.h"
#include "analyzer/solve/library/python/Spread.h"

#include <algorithm>

namespace devicetidy::python {
namespace {

struct Asked {
  std::string scope, name;
};
using Function = Outcomes (*)(Call &call, Row &row, const Asked &asked, const Given &given);

const Name pairType("std::tuple<at::Tensor, at::Tensor>"), listType("std::vector<at::Tensor>");

Outcomes number(Call &call, Row &row, const Asked &, const Given &) {
  return done(row, scalarValue(call.machine.freshScalar(call)));
}

Outcomes first(Call &, Row &row, const Asked &, const Given &given) {
  return done(row, given.positional.empty() ? unknownValue() : given.positional[0].value);
}

Outcomes second(Call &, Row &row, const Asked &, const Given &given) {
  return done(row, given.positional.size() < 2 ? unknownValue() : given.positional[1].value);
}

Outcomes makeParameter(Call &call, Row &row, const Asked &, const Given &given) {
  const Argument *data = given.find("data", 0);
  const Value tensor = data ? data->value : unknownValue();
  if (!is(tensor, ValueKind::Tensor))
    return done(row, unknownValue());
  const Value cell = allocated(call, row, parameterType, call.machine.memory.snapshot(row, tensor));
  return done(row, parameterHandle(cell->address, tensor->rank));
}

Outcomes functional(Call &call, Row &row, const Asked &asked, const Given &given) {
  // Python has more there than LibTorch: scaled_dot_product_attention is an operator.
  const bool isOperator = !models::functional(asked.name, call.machine.version) &&
                          models::atenOp(asked.name, call.machine.version);
  return callTorch(call, row, (isOperator ? "torch::" : "torch::nn::functional::") + asked.name,
                   inOrder(call, given, false), false);
}

// zeros(2, 3) and zeros((2, 3)): the sizes are one argument in C++. The first `placed` have no names.
std::vector<Argument> withSizes(const Call &call, const std::vector<Argument> &args, std::size_t placed) {
  std::vector<Argument> rest;
  std::vector<Value> sizes;
  std::optional<Argument> shape;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const Argument &each = args[i];
    const Value held = behind(call, each.value);
    const bool isSize = is(held, ValueKind::Scalar) ||
                        (is(held, ValueKind::Unknown) && each.written && (i < placed || !shape));
    if (isSize)
      sizes.push_back(held);
    if (isSize || is(held, ValueKind::List)) {
      shape = shape ? *shape : each;
      if (!isSize)
        shape->value = held;
    } else {
      rest.push_back(each);
    }
  }
  if (shape) {
    if (!sizes.empty())
      shape->value = listValue("std::vector<long>", sizes);
    rest.insert(rest.begin(), *shape);
  }
  return rest;
}

} // namespace

// "Expected a 'cuda' device type for generator but found 'cpu'" (ATen/core/Generator.h).
void meetGenerator(Call &call, Outcomes &outcomes, const Given &given, const std::string &name) {
  const Argument *generator = given.find("generator");
  for (Outcome &outcome : outcomes) {
    Call inner{call.machine, call.frame, outcome.row, call.fact, call.first};
    const Value held = generator ? behind(inner, generator->value) : unknownValue();
    const auto device = held->fields.find("device");
    if (device == held->fields.end() || !is(device->second, ValueKind::Device) ||
        !is(outcome.result, ValueKind::Tensor))
      continue;
    Machine::Requirement requirement;
    requirement.operation = name;
    const Value draws = tensorValue(device->second->placement, someRank, device->second->history);
    TensorUse wanted{draws, generator->written};
    wanted.isWanted = true;
    call.machine.requireSame(inner, {{outcome.result, nullptr, "the result"}, wanted}, requirement);
  }
}

namespace {

// What a function writes its result to. A variable that is None has not been set yet.
std::optional<Value> outOf(const Given &given) {
  const Argument *out = given.find("out");
  if (!out || out->text == Name("None"))
    return std::nullopt;
  return is(out->value, ValueKind::Tensor) ? out->value : unknownValue();
}

Outcomes makeTensor(Call &call, Row &row, const Asked &asked, const Given &given) {
  if (const std::optional<Value> out = outOf(given))
    return done(row, *out);
  std::vector<Argument> args = inOrder(call, withDefaultDevice(call, row, given), false);
  if (isOneOf(asked.name, {"zeros", "ones", "empty", "rand", "randn"}))
    args = withSizes(call, args, given.positional.size());
  Outcomes outcomes = callTorch(call, row, "torch::" + asked.name, args, false);
  meetGenerator(call, outcomes, given, asked.name);
  return outcomes;
}

Outcomes makeGenerator(Call &call, Row &row, const Asked &, const Given &given) {
  const Argument *device = given.find("device", 0);
  const Value where = device ? asDevice(call, device->value) : deviceValue(Placement::cpu());
  return done(row, allocated(call, row, generatorType, recordValue(generatorType, {{"device", where}})));
}

// What has a name of its own is more often made of numbers than what is computed or is an element.
bool isNamed(const Argument &data) {
  const std::string_view text = data.text.view(), key = text.substr(std::min(text.find('['), text.size()));
  return !text.empty() && text.find_first_of("(+-*/% ") == std::string_view::npos &&
         (key.empty() || key[1] == '"' || key[1] == '\'');
}

// How deep lists of numbers are, and of tensors that are one: as many dimensions a tensor of them has. 0
// where that is not known.
int depthOf(const Call &call, const Value &data) {
  const auto isNumber = [&](const Value &each) {
    return is(each, ValueKind::Scalar) ||
           (is(each, ValueKind::Tensor) && call.machine.memory.rankOf(call.row, each) == 0);
  };
  int depth = 0;
  Value level = behind(call, data);
  if (const auto dimensions = level->fields.find("_dimensions"); dimensions != level->fields.end())
    return static_cast<int>(call.row.numberOf(dimensions->second).value_or(0)); // of an array
  while (is(level, ValueKind::List) && !isSummary(level) && !level->elements.empty()) {
    ++depth;
    if (std::any_of(level->elements.begin(), level->elements.end(), isNumber)) // so are those beside it
      return depth;
    level = behind(call, level->elements.front());
  }
  return 0;
}

// tensor(data), as_tensor(data), from_numpy(data); of a number it has no dimensions, of something unknown it
// may have.
Outcomes copyData(Call &call, Row &row, const Asked &asked, const Given &named) {
  const Given given = asked.name == "from_numpy" ? named : withDefaultDevice(call, row, named);
  std::vector<Argument> args = inOrder(call, given, false);
  if (args.empty())
    return done(row, unknownValue());
  const Value data = behind(call, args[0].value);
  if (is(data, ValueKind::Tensor)) // where that is, unless it is told to be elsewhere
    return args.size() < 2 ? done(row, data) : callTorch(call, row, "at::Tensor::to", args, true);
  const bool isArray = is(data, ValueKind::Record) && findMethod(call.machine, data->type, "__array__");
  const bool hasDevice = given.find("device") != nullptr;
  const bool isSaid = isOpen(data) && !isOpenRank(data->rank); // an annotation says that it is of numbers
  const bool isHost = isOfHost(data), isUnknown = is(data, ValueKind::Unknown) && !hasDevice && !isHost;
  // What makes an object is a setting, or what somebody has read.
  const bool isSetting = asked.name == "as_tensor" && isOpen(data) && !data->placement.isKnown() &&
                         call.frame.function.isConstructor;
  const bool isOfNumbers = isUnknown && (isSaid || isSetting || (asked.name == "tensor" && isNamed(args[0])));
  if (isOfNumbers)
    row.guessed = true; // tensor(x) of a tensor is where x is; it is for numbers, and PyTorch says so
  else if (isUnknown && asked.name != "from_numpy")
    return done(row, tensorValue(Placement::unknown(), unknownRank, nullptr));
  if (is(data, ValueKind::List) || isArray || isHost || asked.name == "from_numpy") {
    if (!is(data, ValueKind::List))
      args[0].value = summaryList("std::vector<long>", {unknownValue()});
    else if (!isSummary(data) && data->elements.empty())
      return done(row, tensorValue(Placement::unknown(), unknownRank, nullptr));
    else // what is in it does not matter
      args[0].value = summaryList("std::vector<long>", {scalarValue(symbolTerm("an element"))});
  }
  const int depth = depthOf(call, data);
  const bool mayBeNumber = isOfNumbers || (isHost && asked.name != "from_numpy"); // which takes none
  Outcomes outcomes = callTorch(call, row, "torch::tensor", args, false);
  for (Outcome &outcome : outcomes)
    if (mayBeNumber || depth > 0) // of one, or of many
      outcome.result = tensorValue(outcome.result->placement, mayBeNumber ? data->rank : depth,
                                   outcome.result->history, outcome.result->count);
    else if (is(data, ValueKind::Scalar) && numberOf(row.resolve(data->term)))
      outcome.result = ofNumber(outcome.result, row.resolve(data->term));
  return outcomes;
}

// torch.FloatTensor(..) and torch.cuda.FloatTensor(..)
Outcomes legacyTensor(Call &call, Row &row, const Asked &asked, const Given &given) {
  std::vector<Argument> args;
  if (startsWith(asked.scope, "torch.cuda"))
    args.push_back({deviceValue(Placement::cuda(currentCudaIndex())), {}});
  args.insert(args.begin(), {listValue("std::vector<long>", {scalarValue(intTerm(2))}), {}});
  const Value data = given.positional.empty() ? nullptr : given.positional[0].value;
  if (data && is(data, ValueKind::Tensor) && !mayBeLeftOut(data)) // else it may as well be a list
    return done(row, data);
  if (defaultDeviceOf(call, row)) // a default type of tensors counts for it, a default device does not
    return done(row, tensorValue(Placement::unknown(), unknownRank, nullptr));
  return callTorch(call, row, "torch::empty", args, false);
}

Outcomes aten(Call &call, Row &row, const Asked &asked, const Given &given) {
  if (const std::optional<Value> out = outOf(given)) {
    const std::string form = asked.name + "_out"; // takes what is written first
    if (!is(*out, ValueKind::Tensor) || !models::atenOp(form, call.machine.version))
      return done(row, *out);
    Given inputs = given;
    inputs.named.erase(std::remove_if(inputs.named.begin(), inputs.named.end(),
                                      [](const auto &each) { return each.first.view() == "out"; }),
                       inputs.named.end());
    std::vector<Argument> args = inOrder(call, inputs, false);
    args.insert(args.begin(), *given.find("out"));
    return callTorch(call, row, "at::" + form, args, false);
  }
  const std::vector<Argument> args = inOrder(call, given, false);
  const bool hasDim = given.find("dim") || given.positional.size() > 1;
  Outcomes outcomes =
      callTorch(call, row, "at::" + asked.name, args, false, resultTypeOf(asked.name, args, hasDim));
  meetGenerator(call, outcomes, given, asked.name);
  return outcomes;
}

// sparse_coo_tensor(indices, values, ..): told of a device, it brings both there.
Outcomes sparseTensor(Call &call, Row &row, const Asked &asked, const Given &given) {
  const Argument *device = given.find("device");
  const Value to = device ? asDevice(call, device->value) : nullValue();
  Given brought = given;
  if (!is(to, ValueKind::Null))
    for (Argument &each : brought.positional)
      each.value = movedTo(call, row, each.value,
                           is(to, ValueKind::Device) ? call.machine.concrete(row, to->placement)
                                                     : Placement::unknown());
  return aten(call, row, asked, brought);
}

// A model asks whether it certainly is one.
Outcomes isTensor(Call &call, Row &row, const Asked &, const Given &given) {
  const Value value = given.positional.empty() ? unknownValue() : given.positional[0].value;
  const bool isNumber = isOfHost(value) || (isOpen(value) && value->rank == 0);
  return done(row, isOpen(value) && !call.frame.function.isModel ? isTensorQuestion(value)
                   : is(value, ValueKind::Unknown) && !isNumber
                       ? scalarValue(intTerm(1))
                       : scalarValue(intTerm(is(value, ValueKind::Tensor))));
}

Outcomes environment(Call &call, Row &row, const Asked &, const Given &given) {
  if (given.positional.empty())
    return done(row, unknownValue());
  return readVariable(call, row, given.positional[0], given.find("default", 1));
}

Outcomes makeNamespace(Call &call, Row &row, const Asked &, const Given &given) {
  std::map<Name, Value> fields;
  for (const auto &[name, argument] : given.named)
    fields[name] = argument.value;
  return done(row,
              allocated(call, row, "python::namespace", recordValue("python::namespace", std::move(fields))));
}

Outcomes makeParser(Call &call, Row &row, const Asked &, const Given &given) {
  std::map<Name, Value> options;
  const Argument *parents = given.find("parents");
  if (const Value list = parents ? behind(call, parents->value) : missing(); is(list, ValueKind::List))
    for (const Value &parent : list->elements)
      if (const Value held = behind(call, parent); is(held, ValueKind::Record))
        options.insert(held->fields.begin(), held->fields.end());
  return done(row, allocated(call, row, parserType, recordValue(parserType, std::move(options))));
}

// DataLoader(dataset): its batches are where the items of the dataset are.
Outcomes makeLoader(Call &call, Row &row, const Asked &, const Given &given) {
  Machine &machine = call.machine;
  const Argument *dataset = given.find("dataset", 0), *collate = given.find("collate_fn");
  const Value held = dataset ? behind(call, dataset->value) : unknownValue();
  if (!dataset || !is(held, ValueKind::Record))
    return done(row, unknownValue());
  Outcomes items;
  if (findMethod(machine, held->type, "__getitem__")) {
    Given index;
    index.positional.push_back({scalarValue(symbolTerm("an index")), {}});
    items = callMethod(call, row, *dataset, "__getitem__", index);
  } else
    items = done(row, unknownValue());
  Outcomes made;
  for (Outcome &item : items) {
    Outcomes batches;
    if (collate && !is(collate->value, ValueKind::Null)) {
      Given list;
      list.positional.push_back({listOf(call, item.row, {item.result, item.result}), {}});
      batches = callValue(call, item.row, collate->value, list, *collate);
    } else {
      Value batch = batched(call, item.row, item.result);
      batches = done(item.row, std::move(batch));
    }
    for (Outcome &batch : batches) {
      Call inner{machine, call.frame, batch.row, call.fact, call.first};
      const Value held = behind(inner, batch.result); // another one each time
      const Value own = isDict(held) ? allocated(call, batch.row, dictType, held) : batch.result;
      const Value loader = allocated(call, batch.row, loaderType,
                                     recordValue(loaderType, {{"batch", own}, {"dataset", dataset->value}}));
      made.push_back({std::move(batch.row), loader});
    }
  }
  return made;
}

Outcomes makeDict(Call &call, Row &row, const Asked &asked, const Given &given) {
  Given entries = given;
  const bool hasFactory = asked.name == "defaultdict" && !entries.positional.empty();
  if (hasFactory)
    entries.positional.erase(entries.positional.begin());
  Outcomes made = *callContainerMethod(call, row, {missing(), {}}, "dict", entries);
  const Value factory = hasFactory ? given.positional.front().value : nullValue();
  for (Outcome &each : made)
    if (!is(factory, ValueKind::Null)) {
      const Address where = each.result->address;
      call.machine.memory.write(each.row, where,
                                withField(call.machine.memory.read(each.row, where), factoryField, factory));
    }
  return made;
}

Outcomes makeList(Call &call, Row &row, const Asked &, const Given &given) {
  return *callContainerMethod(call, row, {missing(), {}}, "list", given);
}

// deepcopy of a tensor is one where it is; of a module, a module.
Outcomes deepCopy(Call &call, Row &row, const Asked &, const Given &given) {
  if (given.positional.empty())
    return done(row, unknownValue());
  const Argument &what = given.positional[0];
  if (is(what.value, ValueKind::Tensor))
    return done(row, call.machine.memory.snapshot(row, what.value));
  if (is(behind(call, what.value), ValueKind::Record) &&
      call.machine.types.isModule(behind(call, what.value)->type))
    return callTorch(call, row, "torch::nn::SequentialImpl::clone", {what}, true);
  return done(row, what.value);
}

Outcomes ofSequences(Call &call, Row &row, const Asked &asked, const Given &given) {
  return callTorch(call, row, "torch::nn::utils::rnn::" + asked.name, inOrder(call, given, false), false,
                   asked.name == "pad_packed_sequence" ? pairType : Name("at::Tensor"));
}

Outcomes joinGroup(Call &call, Row &row, const Asked &, const Given &given) {
  return initProcessGroup(call, row, given);
}

const std::map<std::string, Function> &functions() {
  static const std::map<std::string, Function> all = {{"torch.nn.Parameter", makeParameter},
                                                      {"torch.nn.parameter.Parameter", makeParameter},
                                                      {"torch.tensor", copyData},
                                                      {"torch.as_tensor", copyData},
                                                      {"torch.asarray", copyData},
                                                      {"torch.from_numpy", copyData},
                                                      {"torch.sparse_coo_tensor", sparseTensor},
                                                      {"torch.is_tensor", isTensor},
                                                      {"torch.utils.data.DataLoader", makeLoader},
                                                      {"torch.Generator", makeGenerator},
                                                      {"torch.distributed.init_process_group", joinGroup},
                                                      {"torch.compile", first},
                                                      {"torch.jit.script", first},
                                                      {"torch.autograd.Variable", first},
                                                      {"typing.cast", second},
                                                      {"os.environ.get", environment},
                                                      {"os.getenv", environment},
                                                      {"argparse.Namespace", makeNamespace},
                                                      {"types.SimpleNamespace", makeNamespace},
                                                      {"argparse.ArgumentParser", makeParser},
                                                      {"collections.OrderedDict", makeDict},
                                                      {"collections.defaultdict", makeDict},
                                                      {"collections.deque", makeList},
                                                      {"copy.deepcopy", deepCopy},
                                                      {"copy.copy", first},
                                                      {"builtins.float", number},
                                                      {"builtins.abs", number},
                                                      {"builtins.round", number},
                                                      {"builtins.print", number}};
  return all;
}

// What LibTorch calls it: torch.fft.fftfreq is fft_fftfreq.
std::string operatorName(const Call &call, const Asked &asked) {
  if (asked.name == "unique")
    return "_unique2";
  const std::string last(asked.scope.substr(asked.scope.rfind('.') + 1));
  return last != "torch" && models::atenOp(last + "_" + asked.name, call.machine.version)
             ? last + "_" + asked.name
             : asked.name;
}

bool isFactory(const Call &call, const std::string &name, const Given &given) {
  const models::Op *op = models::atenOp(name, call.machine.version);
  // normal() makes a tensor of the size that it is given; without one it is an operator.
  return (op && op->rule == models::Rule::Factory) || (name == "normal" && given.find("size", 2));
}

bool isLegacyTensor(const std::string &scope, const std::string &name) {
  return (scope == "torch" || scope == "torch.cuda") && endsWith(name, "Tensor");
}

} // namespace

Value optionOf(const std::string &name) { return optionOf(name, optionTerm(name)); }

Value optionOf(const std::string &name, Term origin) {
  return name.find("device") == std::string::npos
             ? scalarValue(origin)
             : deviceValue(Placement::symbol(SymbolRole::DeviceChoice, origin, Name(name)));
}

Outcomes callLibrary(Call &call, Row row, const std::string &dotted, const Given &given) {
  if (std::optional<Outcomes> outcomes = callDeviceFunction(call, row, dotted, given))
    return std::move(*outcomes);
  const auto known = functions().find(dotted);
  const std::size_t dot = dotted.rfind('.');
  const Asked asked{dot == std::string::npos ? std::string() : dotted.substr(0, dot), dotted.substr(dot + 1)};
  if (known != functions().end())
    return known->second(call, row, asked, given);
  if (asked.scope == "dt")
    if (std::optional<Outcomes> outcomes = callPrimitive(call, row, asked.name, given))
      return std::move(*outcomes);
  if (asked.scope == "torch.Tensor" && !given.positional.empty()) { // a method as a function
    Given rest = given;
    rest.positional.erase(rest.positional.begin());
    return callMethod(call, row, given.positional[0], asked.name, rest);
  }
  if (startsWith(asked.scope, "torch.nn.functional"))
    return functional(call, row, asked, given);
  if (startsWith(asked.scope, "torch.nn") &&
      call.machine.types.isModule(Name("torch::nn::" + asked.name + "Impl")))
    return constructModule(call, row, asked.name, given);
  if (asked.scope == "torch.nn.utils.rnn")
    return ofSequences(call, row, asked, given);
  if (isLegacyTensor(asked.scope, asked.name))
    return legacyTensor(call, row, asked, given);
  if (asked.scope == "builtins")
    if (std::optional<Outcomes> outcomes = callContainerMethod(call, row, {missing(), {}}, asked.name, given))
      return std::move(*outcomes);
  if (isOneOf(asked.scope, {"torch", "torch.linalg", "torch.fft", "torch.special"})) {
    const Asked op{asked.scope, operatorName(call, asked)};
    Given all = given;
    if (const Value rest = given.rest ? behind(call, given.rest) : nullptr;
        rest && is(rest, ValueKind::List) && isOneOf(op.name, {"meshgrid", "cartesian_prod", "block_diag"})) {
      all.positional.push_back({rest, {}}); // as a list
      all.isOpen = false;
    }
    return (isFactory(call, op.name, given) ? makeTensor : aten)(call, row, op, all);
  }
  if (isOneOf(asked.scope, {"math", "random", "time", "np.random", "numpy.random"}))
    return number(call, row, asked, given);
  ++call.machine.solution.stats.unknownCalls[dotted];
  return done(row, unknownResult(call, row));
}

} // namespace devicetidy::python
