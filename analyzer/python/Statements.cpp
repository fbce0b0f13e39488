// Statements.
#include "analyzer/python/FunctionLowering.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/models/Models.h"

#include <algorithm>

namespace devicetidy::python {
namespace {

// Is it a call of a function of torch that makes a tensor, or of a method of one?
bool makesTensor(const Node &value) {
  Node base = value["func"];
  if (!value.is("Call") || !base.is("Attribute") ||
      (base.text("attr")[0] >= 'A' && base.text("attr")[0] <= 'Z'))
    return false;
  const bool makesOther =
      isOneOf(base.text("attr"), {"device", "load", "finfo", "iinfo", "manual_seed", "is_tensor", "no_grad"});
  while (base.is("Attribute") || base.is("Call"))
    base = base.is("Call") ? base["func"] : base["value"];
  return base.text("id") == "torch" && !makesOther;
}

} // namespace

void FunctionLowering::statements(const std::vector<Node> &body) {
  for (const Node &each : body) {
    if (isEnded())
      return; // nothing comes there
    statement(each);
  }
}

void FunctionLowering::statement(const Node &node) {
  const std::string_view kind = node.kind();
  if (kind == "Expr") {
    const Node expression = node["value"];
    if (!expression.is("Constant")) {
      value(expression);
      if (!block().facts.empty() && expression.is("Call"))
        block().facts.back().isDiscarded = true;
    }
  } else if (kind == "Assign" && isClassBody && isMethodHere(node["value"])) {
    // Another name of a method: no attribute that would stand before those of classes that derive from it.
  } else if (kind == "Assign") {
    const Operand assigned = operand(node["value"]);
    for (const Node &target : node.list("targets")) {
      assign(target, assigned);
      noteDimensions(target, node["value"]);
      if (isModuleBody && target.is("Name") && makesTensor(node["value"]))
        noteTensor(target);
    }
  } else if (kind == "AnnAssign") {
    if (node["value"])
      assign(node["target"], operand(node["value"]));
  } else if (kind == "AugAssign") {
    const Node target = node["target"];
    const Operand before = operand(target), by = operand(node["value"]);
    assign(target, use(emitCall("inplace::" + operatorOf(node["op"]), {before, by}, node), node));
  } else if (kind == "If") {
    ifStatement(node);
  } else if (kind == "For" || kind == "AsyncFor") {
    forLoop(node);
  } else if (kind == "While") {
    whileLoop(node);
  } else if (kind == "Try" || kind == "TryStar") {
    tryStatement(node);
  } else if (kind == "With" || kind == "AsyncWith") {
    withStatement(node);
  } else if (kind == "Match") {
    matchStatement(node);
  } else if (kind == "Return") {
    returnStatement(node);
  } else if (kind == "ImportFrom") {
    importStatement(node);
  } else if (kind == "FunctionDef" || kind == "AsyncFunctionDef") {
    define(node);
  } else if (kind == "ClassDef") {
    defineClass(node);
  } else if (kind == "Raise") {
    if (node["exc"])
      value(node["exc"]);
    block().terminator.where = node.where();
  } else if (kind == "Assert") {
    const BlockId holds = newBlock(), fails = newBlock();
    condition(node["test"], holds, fails);
    function.blocks[static_cast<std::size_t>(fails)].terminator.where = node.where();
    enter(holds);
  } else if ((kind == "Break" || kind == "Continue") && !loops.empty()) {
    exitManagers(loops.back().managers, node);
    jump(kind == "Break" ? loops.back().end : loops.back().next);
    return;
  }
  if (!isEnded())
    endStatement();
}

bool FunctionLowering::isMethodHere(const Node &value) const {
  return value.is("Name") &&
         parts.unit.functions.count(parts.module.idOf(qualified + "." + value.text("id"))) != 0;
}

// A variable of the module that is a tensor where it is first bound is one everywhere.
void FunctionLowering::noteTensor(const Node &target) {
  Global &global = parts.unit.globals[parts.module.idOf(target.text("id"))];
  if (global.where.line == target.where().line)
    global.type = Name("at::Tensor");
}

// Who takes the shape of x apart into n numbers says that x has n dimensions.
void FunctionLowering::noteDimensions(const Node &target, const Node &value) {
  const bool isSize = value.is("Call") && value["func"].text("attr") == "size" && value.list("args").empty();
  const Node of = isShape(value) ? value["value"] : isSize ? value["func"]["value"] : Node();
  const std::vector<Node> parts = target.list("elts");
  const bool isCounted = !parts.empty() && std::none_of(parts.begin(), parts.end(),
                                                        [](const Node &each) { return each.is("Starred"); });
  const Reg variable = isCounted ? addressOf(of) : NoReg;
  if (variable == NoReg)
    return;
  Fact count = fact(FactKind::Literal, value);
  count.literal = LiteralKind::Int;
  count.number = static_cast<std::int64_t>(parts.size());
  emitCall("has_dimensions", {use(variable, of, true), use(emit(std::move(count)), value)}, value);
}

// A variable that is used as only a tensor is used holds one.
Operand FunctionLowering::asUsed(const Node &target, const Operand &value) {
  const Fact *made = block().facts.empty() ? nullptr : &block().facts.back();
  const std::string name = target.text("id");
  const bool mayBeOpen =
      made &&
      (made->kind == FactKind::Load || isOneOf(made->name.view(), {"python::get", "python::unpack"}) ||
       startsWith(made->name.view(), "python::attribute::") ||
       startsWith(made->name.view(), "python::method::") ||
       (startsWith(made->name.view(), "python::binary::") && !uses.reassigned.count(name)));
  if (!uses.tensors.count(name))
    return value;
  Operand named = value;
  named.text = Name(name);
  return uses.asked.count(name) ? use(emitCall("asked", {named}, target), target)
         : mayBeOpen            ? use(emitCall("tensor", {value}, target), target)
                                : value;
}

// A variable that is used as what holds several numbers, or as one.
Operand FunctionLowering::asWide(const Node &target, const Operand &value) {
  if (uses.positions.count(target.text("id")))
    return use(emitCall("one", {value}, target), target);
  return uses.wide.count(target.text("id")) ? use(emitCall("wide", {value}, target), target) : value;
}

void FunctionLowering::assign(const Node &target, const Operand &value) {
  if (target.is("Name")) {
    storeName(target, target.text("id"), asWide(target, asUsed(target, value)));
  } else if (const std::optional<Name> id = variableOfModule(target)) {
    Fact store = fact(FactKind::Store, target);
    store.operands = {use(global(target, *id), target, true), value};
    block().facts.push_back(std::move(store));
  } else if (target.is("Attribute")) {
    const Operand object = operand(target["value"]);
    emitCall("set::" + target.text("attr"), {object, value}, target);
  } else if (target.is("Subscript")) {
    const Operand object = operand(target["value"]), index = operand(target["slice"]);
    emitCall("put", {object, index, value}, target);
  } else if (target.is("Starred")) {
    assign(target["value"], value);
  } else {
    assignAll(target.list("elts"), value, target);
  }
}

// a, *b, c = value
void FunctionLowering::assignAll(const std::vector<Node> &targets, const Operand &value, const Node &where) {
  bool isBehindRest = false;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const bool isStarred = targets[i].is("Starred");
    assign(targets[i], use(taken(value, where, i, targets.size(), isStarred, isBehindRest), targets[i]));
    isBehindRest |= isStarred;
  }
}

// Element `i` of `count` that `value` is taken apart into, or what is left for a starred name. Those behind
// it are counted from the end.
Reg FunctionLowering::taken(const Operand &value, const Node &where, std::size_t i, std::size_t count,
                            bool isStarred, bool isBehindRest) {
  const Reg part = emitCall(isStarred ? "rest" : "unpack", {value}, where);
  Fact &made = block().facts.back();
  made.number = static_cast<std::int64_t>(i) - (isBehindRest ? static_cast<std::int64_t>(count) : 0);
  made.templateNumbers = {static_cast<std::int64_t>(count)};
  return part;
}

void FunctionLowering::ifStatement(const Node &node) {
  const std::vector<Node> otherwise = node.list("orelse");
  const BlockId whenTrue = newBlock(), end = newBlock();
  const BlockId whenFalse = otherwise.empty() ? end : newBlock();
  condition(node["test"], whenTrue, whenFalse);
  enter(whenTrue);
  endStatement();
  statements(node.list("body"));
  jump(end);
  if (!otherwise.empty()) {
    enter(whenFalse);
    endStatement();
    statements(otherwise);
    jump(end);
  }
  enter(end);
}

void FunctionLowering::returnStatement(const Node &node) {
  Operand result;
  if (yielded >= 0)
    result = use(loadLocal(yielded, node), node);
  else if (node["value"])
    result = operand(node["value"]);
  exitManagers(0, node);
  block().terminator.kind = TerminatorKind::Return;
  block().terminator.value = result;
  block().terminator.where = node.where();
}

namespace {

// Programs ask by these whether something is there. By others they ask what a model is, and where: its
// parameters say that (`except StopIteration: return "cpu"`).
bool isExpected(const Node &type) {
  const std::vector<Node> several = type.list("elts");
  return std::any_of(several.begin(), several.end(), isExpected) ||
         isOneOf(type.text("id"), {"KeyError", "IndexError", "LookupError", "FileNotFoundError"});
}

// Names that the statements set to True or False.
std::set<std::string> flagsIn(const std::vector<Node> &statements) {
  std::set<std::string> names;
  for (const Node &statement : statements)
    if (statement.is("Assign") && statement["value"].constant().first == "bool")
      for (const Node &target : statement.list("targets"))
        addTargets(target, names);
  return names;
}

bool catchesImports(const Node &handler) {
  const Node type = handler["type"];
  const std::vector<Node> several = type.list("elts");
  const auto isOfImports = [](const Node &each) {
    return isOneOf(each.text("id"), {"ImportError", "ModuleNotFoundError"});
  };
  return isOfImports(type) || std::any_of(several.begin(), several.end(), isOfImports);
}

// What a program notes of a library that may be missing, which is not known here.
std::set<std::string> flagsOfImport(const Node &node) {
  std::set<std::string> flags;
  const std::vector<Node> body = node.list("body");
  if (std::none_of(body.begin(), body.end(), isImport))
    return flags;
  for (const Node &handler : node.list("handlers"))
    if (catchesImports(handler))
      flags.merge(flagsIn(handler.list("body")));
  return flags;
}

// `with pytest.raises(..)`: an error there is what the test wants, and shows nothing.
bool expectsError(const Node &item) {
  const Node function = item["context_expr"]["func"];
  return models::hasRole(function.text(function.is("Attribute") ? "attr" : "id"), "expects_error");
}

} // namespace

// What is raised in the body goes to the first handler, or on; `finally` is run behind all of them.
void FunctionLowering::tryStatement(const Node &node) {
  const BlockId caught = newBlock(), after = newBlock();
  handlers.push_back(caught);
  const BlockId body = newBlock();
  jump(body);
  enter(body);
  statements(node.list("body"));
  handlers.pop_back();
  const BlockId behind = newBlock();
  jump(behind);
  enter(behind);
  statements(node.list("orelse"));
  jump(after);
  BlockId next = caught;
  for (const Node &handler : node.list("handlers")) {
    const BlockId catches = newBlock();
    enter(next);
    next = newBlock();
    branch({}, catches, next, false, handler);
    enter(catches);
    if (isExpected(handler["type"]))
      emitCall("expected", {}, handler);
    endStatement();
    if (const std::string name = handler.text("name"); !name.empty())
      storeName(handler, name, use(emit(fact(FactKind::Opaque, handler)), handler));
    statements(handler.list("body"));
    jump(after);
  }
  function.blocks[static_cast<std::size_t>(next)].terminator.where = node.where(); // it goes on being raised
  enter(after);
  for (const std::string &flag : flagsOfImport(node))
    storeName(node, flag, use(emit(fact(FactKind::Opaque, node)), node));
  statements(node.list("finalbody"));
}

void FunctionLowering::withStatement(const Node &node) {
  const std::size_t around = managers.size();
  enterManagers(node, false);
  const std::vector<Node> items = node.list("items");
  if (std::none_of(items.begin(), items.end(), expectsError))
    statements(node.list("body"));
  if (!isEnded())
    exitManagers(around, node);
  managers.resize(around);
}

// The numbers of those that it enters, by which a function inside finds them where they have names.
std::vector<int> FunctionLowering::enterManagers(const Node &node, bool areNamed) {
  std::vector<int> entering;
  for (const Node &item : node.list("items")) {
    const Node expression = item["context_expr"];
    entering.push_back(++entered);
    const std::string number = std::to_string(entered);
    const Manager manager{newLocal(areNamed ? "@manager " + number : "", {}, expression),
                          newLocal(areNamed ? "@entered " + number : "", {}, expression)};
    const Operand object = operand(expression);
    storeLocal(manager.object, object, expression);
    const Operand given = use(emitCall("enter", {object}, expression), expression);
    storeLocal(manager.entered, given, expression);
    if (!areNamed)
      managers.push_back(manager);
    if (item["optional_vars"])
      assign(item["optional_vars"], given);
    endStatement();
  }
  return entering;
}

// Leaves the blocks of `with` from `from` on, the innermost first; where they go on to is decided behind.
void FunctionLowering::exitManagers(std::size_t from, const Node &node) {
  for (std::size_t i = managers.size(); i > from; --i)
    emitCall("exit",
             {use(loadLocal(managers[i - 1].object, node), node),
              use(loadLocal(managers[i - 1].entered, node), node)},
             node);
}

namespace {

// self.a = x; self.a, self.b = x, y
void addField(const Node &target, const Node &value, const std::string &self,
              const std::map<std::string, Name> &given, Type &type) {
  const std::vector<Node> targets = target.list("elts"), values = value.list("elts");
  for (std::size_t i = 0; i < targets.size(); ++i)
    addField(targets[i], i < values.size() ? values[i] : Node(), self, given, type);
  const Name name(target.text("attr"));
  if (!target.is("Attribute") || target["value"].text("id") != self ||
      std::any_of(type.fields.begin(), type.fields.end(),
                  [&](const Field &each) { return each.name == name; }))
    return;
  const auto passed = given.find(value.text("id"));
  Field field;
  field.name = name;
  field.type = makesTensor(value)                                        ? Name("at::Tensor")
               : passed != given.end()                                   ? passed->second
               : isDeviceName(name.view()) && name.view().front() != '_' ? Name("c10::Device")
                                                                         : Name();
  field.isPrivate = true; // where it is, is the object's affair
  field.where = target.where();
  type.fields.push_back(field);
}

} // namespace

// The attributes that methods give the object, each where it is set first.
void FunctionLowering::addFields(const Node &definition, Type &type) {
  for (const Node &method : definition.list("body")) {
    if (method.is("AnnAssign") && method["target"].is("Name")) { // of a dataclass, in their order
      Field field;
      field.name = Name(method["target"].text("id"));
      field.type = typeOfField(method["annotation"]);
      if (field.type.empty() && isDeviceName(field.name.view()) && method["annotation"].text("id") == "str")
        field.type = "c10::Device";
      field.isPrivate = true;
      field.where = method["target"].where();
      type.fields.push_back(field);
    }
    const std::vector<Node> parameters = method["args"].list("args");
    if (parameters.empty())
      continue;
    const std::string self = parameters.front().text("arg");
    const std::map<std::string, Name> given = typesOfParameters(method);
    forEachOfBlock(method, [&](const Node &node) {
      for (const Node &target : node.is("Assign") ? node.list("targets") : std::vector<Node>{node["target"]})
        addField(target, node["value"], self, given, type);
    });
  }
}

void FunctionLowering::define(const Node &node) {
  const std::string name = node.text("name");
  const std::vector<Node> decorators = Modules::decorators(parts.module, node);
  const std::vector<Node> written = node.list("decorator_list");
  if (std::any_of(written.begin(), written.end(),
                  [](const Node &each) { return each.text("attr") == "deleter"; }))
    return; // has the name of the property
  const auto kept = std::count_if(written.begin(), written.end(),
                                  [&](const Node &each) { return Modules::isOfTorch(parts.module, each); });
  const bool isReplaced =
      isClassBody && !decorators.empty() && decorators.size() + std::size_t(kept) == written.size();
  const std::string mark = isReplaced    ? "@plain"
                           : name == "_" ? "@" + std::to_string(node.where().line) // there may be others
                                         : "";
  FunctionLowering inner(parts, this, className, (qualified.empty() ? name : qualified + "." + name) + mark);
  inner.lowerFunction(node, mark);
  if (isReplaced)
    FunctionLowering(parts, this, className, qualified + "." + name)
        .lowerDecorated(node, decorators, name + mark);
  if (isClassBody)
    for (const std::string &captured : inner.captures)
      capture(captured); // its objects have it
  if (isClassBody || (isModuleBody && Modules::find(parts.module, name)))
    return; // found by its name
  Operand made = use(closure(node, inner), node);
  for (const Node &decorator : decorators) {
    std::vector<Operand> given{operand(decorator), made};
    if (decorator.is("Attribute") &&
        Modules::registersCase(parts.module, decorator)) // of the class written there
      if (const std::vector<Node> parameters = node["args"].list("args");
          !parameters.empty() && parameters[0]["annotation"])
        given.insert(given.begin() + 1, operand(parameters[0]["annotation"]));
    made = use(emitCall("call", std::move(given), node), node);
  }
  storeName(node, name, made);
}

void FunctionLowering::defineClass(const Node &node) {
  const std::string name = node.text("name");
  const std::string within = qualified.empty() ? std::string() : qualified + ".";
  const Name type = parts.module.typeOf(within + name);
  FunctionLowering body(parts, this, type, within + name);
  body.lowerBody(node, node.list("body"), parts.module.idOf(body.qualified + ".@class"), false);
  Type &made = parts.unit.types[type];
  made.id = made.templateName = type;
  made.kind = TypeKind::Record;
  made.isProject = made.isPolymorphic = true;
  made.where = node.where();
  for (const Node &written : node.list("bases")) {
    const Node base = written.is("Subscript") ? written["value"] : written; // Base[T]
    std::optional<Meaning> meaning = meaningOf(base);
    if (meaning && meaning->name == "builtins.list") // has its methods
      meaning = modelled({Meaning::Kind::Library, "collections.UserList", nullptr});
    if (meaning && isOneOf(meaning->name, {"abc.ABC", "builtins.object", "typing.Generic"}))
      continue; // its objects have nothing of them
    if (meaning)
      made.bases.emplace_back(meaning->kind == Meaning::Kind::Class ? meaning->name
                                                                    : "python:" + meaning->name);
    else if (base.is("Name"))
      made.bases.push_back(parts.module.typeOf(within + base.text("id")));
  }
  addFields(node, made);
  const Name first = parts.module.idOf(within + name + ".");
  for (auto each = parts.unit.functions.lower_bound(first);
       each != parts.unit.functions.end() && startsWith(each->first.view(), first.view()); ++each)
    if (each->second.className == type) {
      made.methods.push_back(each->first);
      if (each->second.isConstructor)
        made.constructors.push_back(each->first);
    }
  std::sort(made.methods.begin(), made.methods.end(), [&](Name a, Name b) { // as they are written
    const Location &first = parts.unit.functions.at(a).where, &second = parts.unit.functions.at(b).where;
    return std::pair(first.line, a.view()) < std::pair(second.line, b.view());
  });
  const std::vector<Node> decorators = Modules::decorators(parts.module, node);
  const bool isFound = isModuleBody && Modules::find(parts.module, name);
  if (isFound && decorators.empty())
    return;
  Fact object = fact(FactKind::Closure, node);
  object.name = Name("python::class::" + type.str());
  for (const std::string &captured : body.captures) {
    object.operands.push_back(use(loadName(node, captured), node));
    object.captures.push_back(body.fieldOfCapture(captured));
  }
  const Operand value = use(emit(std::move(object)), node);
  for (const Node &decorator : decorators) // they register it
    emitCall("call", {operand(decorator), value}, node);
  if (!isFound)
    storeName(node, name, value);
}

} // namespace devicetidy::python
