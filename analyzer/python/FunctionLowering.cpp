#include "analyzer/python/FunctionLowering.h"

#include "analyzer/facts/Language.h"
#include "analyzer/facts/NameParts.h"
#include "analyzer/python/Launches.h"

#include <algorithm>

namespace devicetidy::python {

FunctionLowering::FunctionLowering(UnitParts parts, const FunctionLowering *around, Name className,
                                   std::string qualified)
    : parts(parts), around(around), className(className), qualified(std::move(qualified)) {
  newBlock();
}

Fact FunctionLowering::fact(FactKind kind, const Node &node) const {
  Fact fact;
  fact.kind = kind;
  fact.where = node.where();
  return fact;
}

Reg FunctionLowering::emit(Fact fact) {
  fact.result = nextRegister++;
  function.registerCount = std::max(function.registerCount, nextRegister);
  block().facts.push_back(std::move(fact));
  return nextRegister - 1;
}

Operand FunctionLowering::use(Reg reg, const Node &node, bool isAddress) const {
  Operand operand;
  operand.reg = reg;
  operand.isAddress = operand.isWritable = isAddress;
  operand.where = node.where();
  operand.text = node.source();
  return operand;
}

Reg FunctionLowering::emitCall(const std::string &name, std::vector<Operand> operands, const Node &node,
                               std::vector<Name> names) {
  Fact call = fact(FactKind::Call, node);
  call.name = Name("python::" + name);
  call.isVirtual = true;
  call.operands = std::move(operands);
  call.captures = std::move(names);
  return emit(std::move(call));
}

// The type of the class as a value, which has no other.
Name FunctionLowering::typeOfClass() {
  const Name id("python::class::" + className.str());
  Type &type = parts.unit.types[id];
  type.id = type.templateName = id;
  type.kind = TypeKind::Function;
  return id;
}

int FunctionLowering::newLocal(const std::string &name, Name type, const Node &node) {
  Variable variable;
  variable.name = name;
  variable.type = type;
  variable.where = node.where();
  function.locals.push_back(variable);
  const int index = static_cast<int>(function.locals.size()) - 1;
  if (!name.empty())
    locals[name] = index;
  return index;
}

Reg FunctionLowering::loadLocal(int local, const Node &node) {
  Fact address = fact(FactKind::Local, node);
  address.number = local;
  Fact load = fact(FactKind::Load, node);
  load.operands.push_back(use(emit(std::move(address)), node, true));
  return emit(std::move(load));
}

void FunctionLowering::storeLocal(int local, const Operand &value, const Node &node) {
  Fact address = fact(FactKind::Local, node);
  address.number = local;
  const Reg where = emit(std::move(address));
  Fact store = fact(FactKind::Store, node);
  store.operands = {use(where, node, true), value};
  block().facts.push_back(std::move(store));
}

void FunctionLowering::endStatement() {
  Fact end;
  end.kind = FactKind::EndStatement;
  block().facts.push_back(std::move(end));
  nextRegister = 0;
}

BlockId FunctionLowering::newBlock() {
  function.blocks.emplace_back();
  function.blocks.back().handler = handlers.empty() ? -1 : handlers.back();
  return static_cast<BlockId>(function.blocks.size()) - 1;
}

bool FunctionLowering::isEnded() const {
  const Terminator &end = function.blocks[static_cast<std::size_t>(current)].terminator;
  return end.kind != TerminatorKind::Unreachable || end.where.valid();
}

void FunctionLowering::jump(BlockId to) {
  if (isEnded())
    return;
  block().terminator.kind = TerminatorKind::Jump;
  block().terminator.successors = {to};
}

void FunctionLowering::branch(const Operand &value, BlockId whenTrue, BlockId whenFalse, bool entersLoop,
                              const Node &node) {
  Terminator &end = block().terminator;
  end.kind = TerminatorKind::Branch;
  end.value = value;
  end.successors = {whenTrue, whenFalse};
  end.entersLoop = entersLoop;
  end.where = node.where();
}

// Falls off the end: returns None, or what a generator gave.
void FunctionLowering::finish() {
  if (!isEnded()) {
    block().terminator.kind = TerminatorKind::Return;
    if (yielded >= 0)
      block().terminator.value = use(loadLocal(yielded, Node()), Node());
  }
  function.hasBody = true;
  function.isModel |= parts.module.isModel;
  parts.unit.functions[function.id] = function;
}

void FunctionLowering::lowerBody(const Node &owner, const std::vector<Node> &body, Name id, bool isMain) {
  isClassBody = owner.is("ClassDef");
  isModuleBody = !isClassBody;
  function.id = id;
  function.name = Name(isClassBody ? qualified + "::@class" : isMain ? "main" : importedBody);
  function.className = isClassBody ? className : Name();
  function.isMain = isMain;
  function.where = owner.where();
  if (!function.where.valid()) {
    function.where.file = parts.module.path;
    function.where.line = function.where.column = function.where.endLine = function.where.endColumn = 1;
  }
  if (isModuleBody) {
    addSurroundings(isMain);
    shapes = ClassShapes(body);
    hooks = HookFunctions(body);
  }
  named = parameterNames(parts.module, functionsIn(body));
  statements(body);
  finish();
}

void FunctionLowering::lowerData(const Node &value) {
  function.id = parts.module.idOf("data");
  function.name = "data";
  function.isModel = true;
  block().terminator.value = operand(value);
  block().terminator.kind = TerminatorKind::Return;
  finish();
}

// What stands outside of Python files: the command that starts the program, and the data it reads.
void FunctionLowering::addSurroundings(bool isMain) {
  const auto text = [&](const std::string &written) {
    Fact literal = fact(FactKind::Literal, Node());
    literal.literal = LiteralKind::String;
    literal.name = Name(written);
    return use(emit(std::move(literal)), Node());
  };
  for (const auto &[name, data] : parts.module.data) {
    Fact closure = fact(FactKind::Closure, Node());
    closure.target = data->idOf("data");
    emitCall("library::dt.has_file", {text(name), use(emit(std::move(closure)), Node())}, Node());
    block().facts.back().where = function.where;
    endStatement();
  }
  if (isMain) { // where a command starts it once for each GPU, there is such a function (Launches.h)
    emitCall("launch", {}, Node());
    Fact &launch = block().facts.back();
    launch.target = launchOf(parts.module.path);
    launch.isVirtual = false;
    launch.where = function.where;
    endStatement();
  }
}

void FunctionLowering::lowerDecorated(const Node &method, const std::vector<Node> &decorators,
                                      const std::string &plain) {
  function.id = parts.module.idOf(qualified);
  function.where = method.where();
  function.name = Name(around->qualified + "::" + method.text("name"));
  function.className = className;
  function.isPrivate = method.text("name") == "__init__"; // objects are made with what it decorates
  selfName = "self";
  std::vector<Operand> passed;
  std::vector<Name> names = {{}, {}};
  for (const char *mark : {"*", "**"}) {
    const int rest = newLocal(std::string(mark) + "rest", {}, method);
    ++function.paramCount;
    passed.push_back(use(loadLocal(rest, method), method));
    names.emplace_back(mark);
  }
  const Reg owner = loadMeaning(method, {Meaning::Kind::Class, className.str(), nullptr});
  Operand made = use(emitCall("attribute::" + plain, {use(owner, method)}, method), method);
  for (const Node &decorator : decorators)
    made = use(emitCall("call", {operand(decorator), made}, method), method);
  passed.insert(passed.begin(), {made, use(loadName(method, selfName), method)});
  block().terminator.value = use(emitCall("call", std::move(passed), method, std::move(names)), method);
  block().terminator.kind = TerminatorKind::Return;
  finish();
}

namespace {

// By convention: its name, or that of its class, begins with an underscore and is no special one.
bool isPrivate(std::string_view qualified) {
  while (!qualified.empty()) {
    const std::size_t end = std::min(qualified.find('.'), qualified.size());
    if (isPrivateName(qualified.substr(0, end)))
      return true;
    qualified.remove_prefix(std::min(end + 1, qualified.size()));
  }
  return false;
}

} // namespace

void FunctionLowering::lowerFunction(const Node &node, const std::string &mark) {
  isMethod = !className.empty() &&
             !isOneOf(node.kind(), {"Lambda", "ListComp", "SetComp", "DictComp", "GeneratorExp"}) && around &&
             around->isClassBody;
  function.id = parts.module.idOf(qualified);
  function.where = node.where();
  function.isPrivate = (isPrivate(qualified) && !ofModule().hooks.has(node)) ||
                       !node.list("generators").empty(); // of a comprehension
  const bool isNested = around && !around->isModuleBody && !around->isClassBody;
  function.isLambda = isNested;
  bool takesClass = false;
  std::string name = node.text("name") + mark;
  for (const Node &decorator : node.list("decorator_list")) {
    const std::string says = decorator.is("Attribute") ? decorator.text("attr") : decorator.text("id");
    if (isOneOf(says, {"property", "cached_property"}))
      name.insert(0, "@get ");
    function.isStatic |= isOneOf(says, {"staticmethod", "classmethod"});
    takesClass |= says == "classmethod";
    if (says == "setter") { // beside the property, which has the same name
      name.insert(0, "@set ");
      function.id = parts.module.idOf(qualified + "@set");
    }
  }
  if (isMethod) {
    function.name = Name(around->qualified + "::" + name);
    function.className = className;
    function.isConstructor = node.text("name") == "__init__"; // whatever a decorator adds to it
  } else {
    function.name = Name(name.empty() ? qualified : name);
  }
  forEachOfBlock(node, [&](const Node &each) { scope.add(each); });
  addImports();
  addParameters(node, isMethod && !function.isStatic);
  if (isMethod && takesClass && !function.locals.empty())
    function.locals.front().type = typeOfClass();
  for (const std::string &bound : scope.bound)
    if (!isLocal(bound) && !scope.declaredGlobal.count(bound) && !scope.declaredNonlocal.count(bound))
      newLocal(bound, {}, node);
  const bool isOfWith = scope.yields && isManager(node);
  if (scope.yields && !isOfWith) {
    yielded = newLocal("", {}, node);
    storeLocal(yielded, use(emitCall("list", {}, node), node), node);
    endStatement();
  }
  bindDefaults(node);
  markWide(node);
  addCells(node);
  if (node.is("Lambda")) {
    block().terminator.value = use(value(node["body"]), node["body"]);
    block().terminator.kind = TerminatorKind::Return;
  } else if (!node.list("generators").empty()) {
    yielded = newLocal("", {}, node);
    const std::string made = node.is("DictComp") ? "dict" : node.is("SetComp") ? "set" : "list";
    storeLocal(yielded, use(emitCall(made, {}, node), node), node);
    endStatement();
    comprehensionBody(node, 0);
  } else if (isOfWith) {
    managerBody(node);
  } else {
    statements(node.list("body"));
  }
  finish();
}

} // namespace devicetidy::python
