// Parameters: what they are called, what they are when nothing is given, what type they have.
#include "analyzer/python/FunctionLowering.h"

#include "analyzer/facts/NameParts.h"

#include <utility>

namespace devicetidy::python {
bool isDeviceName(std::string_view name) {
  return name == "device" || name == "dev" || endsWith(name, "_device");
}

namespace {

const Name tensorType("at::Tensor"), deviceType("c10::Device"), listType("std::vector<at::Tensor>");
const Name numberType("python::number"), numbersType("python::numbers"), // C++ has no types for them
    moduleType("python::module");

// Is it a type that the analysis has, and no name of the program?
bool isKnown(Name type) {
  return !type.empty() && (!startsWith(type.view(), "python:") || startsWith(type.view(), "python::"));
}

// What all alternatives say, None left out; where they say different things, nothing is known.
Name typeOfUnion(const std::vector<Node> &alternatives) {
  Name common;
  for (const Node &each : alternatives) {
    if (isOneOf(each.constant().first, {"NoneType", "ellipsis"}))
      continue;
    const Name said = typeOfAnnotation(each);
    if (!common.empty() && said != common)
      return Name("python:Union");
    common = said;
  }
  return common;
}

} // namespace

// `torch.Tensor`, "Tensor", Optional[Tensor]
Name typeOfAnnotation(const Node &annotation) {
  if (annotation.is("BinOp")) // Tensor | None
    return typeOfUnion({annotation["left"], annotation["right"]});
  if (annotation.is("Subscript")) {
    const std::string of = annotation["value"].is("Attribute") ? annotation["value"].text("attr")
                                                               : annotation["value"].text("id");
    const Node slice = annotation["slice"];
    const std::vector<Node> parts = slice.is("Tuple") ? slice.list("elts") : std::vector<Node>{slice};
    const bool isMap =
        isOneOf(of, {"Dict", "dict", "Mapping", "MutableMapping", "OrderedDict", "DefaultDict"});
    const Name inner = isMap ? typeOfAnnotation(parts.back()) : typeOfUnion(parts);
    if (isOneOf(of, {"Optional", "Union"}))
      return inner;
    const bool isSequence = isOneOf(of, {"List", "list", "Sequence", "Iterable"});
    if (inner == numberType && (isSequence || isOneOf(of, {"Tuple", "tuple"})))
      return numbersType;
    if (inner == tensorType && isSequence)
      return listType;
    const bool holds = isSequence || isMap || isOneOf(of, {"Tuple", "tuple"});
    return Name((holds && isKnown(inner) ? std::string(holdsType) : "python:" + of + ":") + inner.str());
  }
  const std::string says = annotation.is("Attribute")  ? annotation.text("attr")
                           : annotation.is("Name")     ? annotation.text("id")
                           : annotation.is("Constant") ? annotation.constant().second
                                                       : std::string();
  if (isOneOf(says, {"Tensor", "torch.Tensor", "FloatTensor", "LongTensor", "BoolTensor", "IntTensor",
                     "OptTensor"}))
    return tensorType;
  if (isOneOf(says, {"device", "torch.device"}))
    return deviceType;
  if (isOneOf(says, {"float", "int", "bool"}))
    return numberType;
  if (isOneOf(says, {"ndarray", "np.ndarray", "numpy.ndarray"}))
    return numbersType;
  const Node scope = annotation["value"];
  const bool isOfNn = annotation.is("Attribute") && (scope.text("id") == "nn" || scope.text("attr") == "nn");
  if (isOneOf(says, {"Module", "nn.Module", "torch.nn.Module"}) || (isOfNn && !startsWith(says, "Parameter")))
    return moduleType;
  return says.empty() || says == "None" || says == "Any" ? Name() : Name("python:" + says);
}

namespace {

// (1.0, 2.0): several numbers where nothing is given, and where something is.
bool areNumbers(const Node &value) {
  const std::vector<Node> all =
      value.is("Tuple") || value.is("List") ? value.list("elts") : std::vector<Node>();
  return !all.empty() && std::all_of(all.begin(), all.end(), [](const Node &each) {
    return isOneOf((each.is("UnaryOp") ? each["operand"] : each).constant().first, {"int", "float"});
  });
}

std::vector<Node> positionalParameters(const Node &arguments) {
  std::vector<Node> positional = arguments.list("posonlyargs");
  for (const Node &each : arguments.list("args"))
    positional.push_back(each);
  return positional;
}

// The parameters that have a default, each with it.
std::vector<std::pair<Node, Node>> defaultsOf(const Node &arguments) {
  std::vector<std::pair<Node, Node>> given;
  const std::vector<Node> positional = positionalParameters(arguments), named = arguments.list("kwonlyargs"),
                          defaults = arguments.list("defaults"), ofNamed = arguments.list("kw_defaults");
  for (std::size_t i = 0; i < defaults.size() && i < positional.size(); ++i)
    given.emplace_back(positional[positional.size() - defaults.size() + i], defaults[i]);
  for (std::size_t i = 0; i < named.size() && i < ofNamed.size(); ++i)
    if (ofNamed[i])
      given.emplace_back(named[i], ofNamed[i]);
  return given;
}

} // namespace

Name typeOfParameter(const TensorUses &uses, const Node &parameter, bool isForward) {
  const std::string name = parameter.text("arg");
  const Name said = typeOfAnnotation(parameter["annotation"]);
  if (isKnown(said))
    return said;
  if (isDeviceName(name))
    return deviceType;
  if (!said.empty())
    return {};
  if (isOneOf(name, {"model", "net", "network", "module", "optimizer", "criterion", "loader", "dataset",
                     "args", "config"}))
    return {};
  if (uses.tensors.count(name) || (isForward && isOneOf(name, {"x", "input", "inputs", "hidden_states"})))
    return tensorType;
  return uses.lists.count(name) ? listType : Name();
}

namespace {

// Is it asked for what only a module has?
bool isModule(const std::set<std::string> &asked) {
  return std::any_of(asked.begin(), asked.end(), [](const std::string &name) {
    return isOneOf(name, {"parameters", "named_parameters", "modules", "named_modules", "get_submodule"});
  });
}

// The X of Optional[X] and X | None.
Node withoutNone(const Node &annotation) {
  if (annotation.is("BinOp") && annotation["right"].constant().first == "NoneType")
    return annotation["left"];
  return annotation.is("Subscript") && annotation["value"].text("id") == "Optional" ? annotation["slice"]
                                                                                    : annotation;
}

} // namespace

Name FunctionLowering::objectType(const Node &annotation) {
  const std::optional<Meaning> meaning =
      annotation.is("Name") || annotation.is("Attribute") ? meaningOf(annotation) : std::nullopt;
  return meaning && meaning->kind == Meaning::Kind::Class ? typeOfObjects(*meaning) : Name();
}

const FunctionLowering &FunctionLowering::ofModule() const {
  const FunctionLowering *module = this;
  while (module->around)
    module = module->around;
  return *module;
}

Name FunctionLowering::shapedType(const std::set<std::string> &asked) {
  const std::string name = ofModule().shapes.classWith(asked);
  const Meaning *meaning = name.empty() ? nullptr : Modules::find(parts.module, name);
  return meaning && meaning->kind == Meaning::Kind::Class ? typeOfObjects(*meaning) : Name();
}

Name FunctionLowering::typeOfObjects(const Meaning &ofClass) {
  const Name id(ofClass.name + " *");
  Type &type = parts.unit.types[id];
  type.id = id;
  type.kind = TypeKind::Pointer;
  type.pointee = Name(ofClass.name);
  return id;
}

Name FunctionLowering::typeOfField(const Node &annotation) {
  const Name said = typeOfAnnotation(annotation);
  const bool mayBeNone =
      annotation.is("BinOp") || (annotation.is("Subscript") && annotation["value"].text("id") == "Optional");
  return mayBeNone ? Name() : isKnown(said) ? said : objectType(annotation);
}

std::map<std::string, Name> FunctionLowering::typesOfParameters(const Node &node) {
  std::map<std::string, Name> types;
  for (const Node &each : positionalParameters(node["args"]))
    if (const Name type = typeOfField(each["annotation"]); !type.empty())
      types.emplace(each.text("arg"), type);
  for (const auto &[parameter, value] : defaultsOf(node["args"]))
    types.erase(parameter.text("arg"));
  return types;
}

// What the code around says of its parameters' names. A method is given tensors to compute with, more often
// than numbers.
void FunctionLowering::addNamed(const Node &node, std::set<std::string> &tensors) const {
  const bool isOfClass = around && around->isClassBody && node.is("FunctionDef");
  std::set<std::string> computed = isOfClass ? computedWith(node) : std::set<std::string>();
  const std::set<std::string> asked = comparedWithNone(node);
  for (const FunctionLowering *block = around; block; block = block->around) {
    for (const std::string &name : block->named.tensors)
      if (!asked.count(name))
        tensors.insert(name);
    for (const auto *others : {&block->named.others, &block->named.ofConstructors})
      for (const std::string &name : *others)
        computed.erase(name);
  }
  tensors.insert(computed.begin(), computed.end());
  if (isOfClass)
    tensors.merge(appendedTo(node, around->named.joined));
}

Name FunctionLowering::containerNamed(const std::string &name) const {
  for (const FunctionLowering *block = around; block; block = block->around)
    if (const auto found = block->named.containers.find(name); found != block->named.containers.end())
      return found->second;
  return {};
}

void FunctionLowering::addParameters(const Node &node, bool isMethod) {
  uses = tensorUses(parts.module, node, around && around->uses.forNumPy.count(node.where()));
  if (!node.list("generators").empty()) { // of a comprehension: what it goes through
    newLocal("", {}, node);
    function.paramCount = function.requiredParams = 1;
    return;
  }
  TensorUses said = uses;
  const bool isNested = around && !around->isModuleBody && !around->isClassBody;
  if (node.text("name") != "__init__" && (!isNested || node.is("Lambda")))
    addNamed(node, said.tensors);
  said.tensors.insert(ofModule().hooks.tensorOf(node));
  const Node all = node["args"];
  std::vector<Node> parameters = positionalParameters(all);
  const std::size_t positional = parameters.size();
  for (const Node &each : all.list("kwonlyargs"))
    parameters.push_back(each);
  const bool isForward = node.text("name") == "forward";
  const std::map<std::string, std::set<std::string>> asked = attributesAsked(node);
  std::set<std::string> numbers, withDefault, counts;
  for (const auto &[parameter, value] : defaultsOf(all)) {
    withDefault.insert(parameter.text("arg"));
    if (value.constant().first == "int")
      counts.insert(parameter.text("arg"));
    if (areNumbers(value))
      numbers.insert(parameter.text("arg"));
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (i == 0 && isMethod) {
      selfName = parameters[i].text("arg");
      if (scope.bound.count(selfName)) // it is assigned, too: `self = self.to(..)`
        selfName = {};
      else
        continue;
    }
    const std::string name = parameters[i].text("arg");
    Name type = typeOfParameter(said, parameters[i], isForward);
    if (type == tensorType && !parameters[i]["annotation"] && counts.count(name)) // n_fft=64
      type = {};
    if (type.empty())
      type = objectType(withoutNone(parameters[i]["annotation"]));
    if (const auto found = asked.find(name);
        type.empty() && found != asked.end() && !parameters[i]["annotation"] && !numbers.count(name))
      type = shapedType(found->second);
    if (const auto found = asked.find(name);
        type.empty() && found != asked.end() && !parameters[i]["annotation"] && isModule(found->second))
      type = moduleType;
    if (type.empty() && !parameters[i]["annotation"] && !withDefault.count(name))
      type = containerNamed(name);
    newLocal(name, type.empty() && numbers.count(name) ? numbersType : type, parameters[i]);
    ++function.paramCount;
    function.requiredParams += i < positional; // may be given without a name
  }
  for (const auto &[field, mark] : {std::pair("vararg", "*"), std::pair("kwarg", "**")})
    if (const Node rest = all[field]) {
      const std::string name = rest.text("arg");
      newLocal(mark + name, {}, rest);
      locals[name] = static_cast<int>(function.locals.size()) - 1;
      ++function.paramCount;
    }
}

// Parameters that are used as what holds several numbers.
void FunctionLowering::markWide(const Node &node) {
  for (std::uint32_t i = 0; i < function.paramCount; ++i)
    if (const Variable &parameter = function.locals[i];
        parameter.type == tensorType && uses.wide.count(parameter.name.str())) {
      const int index = static_cast<int>(i);
      storeLocal(index, use(emitCall("wide", {use(loadLocal(index, node), node)}, node), node), node);
      endStatement();
    }
}

// A parameter that nothing was given for is what its default says, with the names of the block around: in
// `lambda x, device=device: ..` the second is a variable there.
void FunctionLowering::bindDefaults(const Node &node) {
  const Node all = node["args"];
  if (!all)
    return;
  for (const auto &[parameter, value] : defaultsOf(all)) {
    const auto local = locals.find(parameter.text("arg"));
    if (local == locals.end())
      continue;
    const int index = local->second;
    function.locals[static_cast<std::size_t>(index)].isConst = true; // it may be left out
    Operand passed = use(loadLocal(index, parameter), parameter);
    passed.text = Name(parameter.text("arg"));
    const auto own = std::exchange(locals, {});
    const Operand otherwise = operand(value);
    locals = own;
    storeLocal(index, use(emitCall("default", {passed, otherwise}, parameter), parameter), parameter);
    endStatement();
  }
}

} // namespace devicetidy::python
