// What names stand for: local variables, those of functions around, of the module, definitions and libraries.
#include "analyzer/python/FunctionLowering.h"

#include "analyzer/facts/NameParts.h"

#include <algorithm>
#include <cctype>

namespace devicetidy::python {

// A block of a module or a class binds names too, but a function in a class does not see those of the class.
bool FunctionLowering::isBound(const std::string &name) const {
  return !isModuleBody && !isClassBody && (isLocal(name) || name == selfName);
}

bool FunctionLowering::mayCapture(const std::string &name) const {
  if (scope.declaredGlobal.count(name))
    return false;
  for (const FunctionLowering *outer = around; outer; outer = outer->around)
    if (outer->isBound(name) ||
        std::find(outer->captures.begin(), outer->captures.end(), name) != outer->captures.end())
      return true;
  return false;
}

const Meaning *FunctionLowering::imported(const std::string &name) const {
  for (const FunctionLowering *each = this; each && !each->isBound(name); each = each->around)
    if (const auto found = each->imports.find(name); found != each->imports.end())
      return &found->second;
  return Modules::find(parts.module, name);
}

// A variable that is imported from its module.
static bool isVariable(const Meaning &meaning) {
  return meaning.kind == Meaning::Kind::Module && meaning.module->variables.count(meaning.name);
}

// Of a variable of another module, the module has one of its own, with what that one holds when it is
// imported.
bool FunctionLowering::isCopied(const std::string &name, const Meaning &meaning) const {
  return isModuleBody && isVariable(meaning) &&
         (scope.bound.count(name) || !Modules::find(parts.module, name));
}

// A name that is assigned, too, is a variable.
void FunctionLowering::addImports() {
  for (const Node &statement : scope.imports)
    for (auto &[name, meaning] : parts.module.modules->meaningsOf(parts.module, statement))
      if (!scope.bound.count(name) && !isCopied(name, meaning))
        imports[name] = std::move(meaning);
}

void FunctionLowering::importStatement(const Node &node) {
  for (const auto &[name, meaning] : parts.module.modules->meaningsOf(parts.module, node))
    if (isCopied(name, meaning)) {
      Fact load = fact(FactKind::Load, node);
      load.operands.push_back(use(global(node, meaning.module->idOf(meaning.name)), node, true));
      storeName(node, name, use(emit(std::move(load)), node));
    }
}

// An object of the class has it beside its own attributes; what calls a function is no object of the program.
Name FunctionLowering::fieldOfCapture(const std::string &name) const {
  return Name(isMethod || isClassBody ? "@captured " + name : name);
}

void FunctionLowering::capture(const std::string &name) {
  if (std::find(captures.begin(), captures.end(), name) == captures.end())
    captures.push_back(name);
}

// A function or class of a library is what models it.
Meaning FunctionLowering::modelled(const Meaning &meaning) const {
  const Meaning *model =
      meaning.kind == Meaning::Kind::Library ? parts.module.modules->modelOf(meaning.name) : nullptr;
  return model ? *model : meaning;
}

std::optional<Meaning> FunctionLowering::meaningOf(const Node &node) const {
  const std::optional<Meaning> meaning = writtenMeaning(node);
  return meaning ? std::optional(modelled(*meaning)) : std::nullopt;
}

static bool isClassName(std::string_view name) { return !name.empty() && std::isupper(name.front()); }

// As it is written: what models it is not looked for.
std::optional<Meaning> FunctionLowering::writtenMeaning(const Node &node) const {
  if (node.is("Name")) {
    const std::string name = node.text("id");
    const bool isImported = imports.count(name) != 0;
    if (!isImported && (isLocal(name) || name == selfName || mayCapture(name)))
      return std::nullopt;
    const Meaning *found = imported(name);
    if (found)
      return isVariable(*found) ? std::nullopt : std::optional(*found);
    if (parts.module.variables.count(name))
      return std::nullopt;
    return Meaning{Meaning::Kind::Library, "builtins." + name, nullptr};
  }
  if (!node.is("Attribute"))
    return std::nullopt;
  const std::optional<Meaning> base = writtenMeaning(node["value"]);
  // What a class has is found where it is asked for; below a module of a library that is written like one
  // there are classes.
  const bool isClass = base && modelled(*base).kind == Meaning::Kind::Class &&
                       (isClassName(lastPart(base->name)) || !isClassName(node.text("attr")));
  if (!base || startsWith(base->name, "builtins.") || isClass)
    return std::nullopt;
  if (base->kind == Meaning::Kind::Library)
    return Meaning{Meaning::Kind::Library, base->name + "." + node.text("attr"), nullptr};
  if (base->kind != Meaning::Kind::Module)
    return std::nullopt;
  const Meaning *member = Modules::find(*base->module, node.text("attr"));
  return member && !isVariable(*member) ? std::optional(*member) : std::nullopt;
}

Reg FunctionLowering::loadMeaning(const Node &node, const Meaning &meaning) {
  Fact closure = fact(FactKind::Closure, node);
  if (meaning.kind == Meaning::Kind::Function)
    closure.target = Name(meaning.name);
  else if (meaning.kind == Meaning::Kind::Class)
    closure.name = Name("python::class::" + meaning.name);
  else if (meaning.kind == Meaning::Kind::Library)
    return emitCall("value::" + meaning.name, {}, node);
  else
    closure.name = Name("python::module::" + meaning.module->path);
  return emit(std::move(closure));
}

Reg FunctionLowering::addressOf(const Node &node) {
  const std::string name = node.text("id");
  return node.is("Name") && isLocal(name) ? variableOf(node, name) : NoReg;
}

namespace {

void addNonlocals(const Node &node, std::set<std::string> &names) {
  if (node.is("Nonlocal"))
    for (const std::string &name : node.names("names"))
      names.insert(name);
  for (const Node &child : node.children())
    addNonlocals(child, names);
}

// A function finds what a name stands for when it is called: what the block binds behind it, or it itself.
void addLateNames(const Node &block, std::set<std::string> &names) {
  std::set<std::string> used;
  forEachOfBlock(block, [&](const Node &each) {
    if (isOneOf(each.kind(), {"FunctionDef", "AsyncFunctionDef", "Lambda", "ClassDef"})) {
      Scope own;
      forEachOfBlock(each, [&](const Node &node) { own.add(node); });
      for (const Node &parameter : each["args"].list("args"))
        own.bound.insert(parameter.text("arg"));
      std::set<std::string> found;
      addNames(each, found);
      for (const std::string &name : found)
        if (!own.bound.count(name))
          used.insert(name);
    }
    Scope binds;
    binds.add(each);
    for (const std::string &name : binds.bound)
      if (used.count(name))
        names.insert(name);
  });
}

} // namespace

void FunctionLowering::addCells(const Node &node) {
  std::set<std::string> assigned;
  addLateNames(node, assigned);
  forEachOfBlock(node, [&](const Node &each) {
    if (hasScope(each))
      addNonlocals(each, assigned);
  });
  for (const std::string &name : assigned)
    if (isLocal(name))
      cells.insert(name);
  if (cells.empty())
    return;
  Fact made = fact(FactKind::New, node);
  made.type = Name("@cells");
  const int holder = newLocal(cellHolder(), {}, node);
  storeLocal(holder, use(emit(std::move(made)), node, true), node);
  for (const std::string &name : cells)
    if (const int local = locals[name]; local < static_cast<int>(function.paramCount))
      storeName(node, name, use(loadLocal(local, node), node));
  endStatement();
}

Reg FunctionLowering::cellOf(const Node &node, const std::string &name) {
  const FunctionLowering *owner = this;
  while (owner && !owner->isBound(name))
    owner = owner->around;
  if (!owner || !owner->cells.count(name))
    return NoReg;
  Fact cell = fact(FactKind::Field, node);
  cell.name = Name(name);
  cell.operands.push_back(use(loadName(node, owner->cellHolder()), node, true));
  return emit(std::move(cell));
}

// Of what can be assigned to; NoReg for a name with a meaning of its own.
Reg FunctionLowering::variableOf(const Node &node, const std::string &name) {
  if (const Reg cell = cellOf(node, name); cell != NoReg)
    return cell;
  if (const auto local = locals.find(name); local != locals.end()) {
    Fact address = fact(FactKind::Local, node);
    address.number = local->second;
    return emit(std::move(address));
  }
  if (mayCapture(name)) {
    capture(name);
    Fact self = fact(FactKind::This, node);
    Fact field = fact(FactKind::Field, node);
    field.name = fieldOfCapture(name);
    field.operands.push_back(use(emit(std::move(self)), node, true));
    return emit(std::move(field));
  }
  if (meaningOf(node))
    return NoReg;
  const Meaning *found = imported(name);
  return global(node, found && found->module ? found->module->idOf(found->name) : parts.module.idOf(name));
}

Reg FunctionLowering::global(const Node &node, Name id) {
  Fact address = fact(FactKind::Global, node);
  address.name = id;
  if (const auto known = parts.unit.globals.find(id); known != parts.unit.globals.end())
    address.type = known->second.type;
  return emit(std::move(address));
}

std::optional<Name> FunctionLowering::variableOfModule(const Node &node) const {
  const std::optional<Meaning> owner =
      node.is("Attribute") ? writtenMeaning(node["value"]) : std::optional<Meaning>();
  if (!owner || owner->kind != Meaning::Kind::Module)
    return std::nullopt;
  const std::string name = node.text("attr");
  const Meaning *found = Modules::find(*owner->module, name);
  if (found && isVariable(*found)) // which that module has imported
    return found->module->idOf(found->name);
  return !found && owner->module->variables.count(name) ? std::optional(owner->module->idOf(name))
                                                        : std::nullopt;
}

std::vector<Operand> FunctionLowering::withVariable(std::vector<Operand> operands, const Node &asked) {
  Node node = asked;
  for (bool isPart = true; isPart;) {
    const bool isEntry = node.is("Subscript") && node["slice"].is("Constant");
    const std::vector<Node> given = node.is("Call") ? node.list("args") : std::vector<Node>();
    const bool isGet =
        node.is("Call") && node["func"].is("Attribute") && node["func"].text("attr") == "get" &&
        std::all_of(given.begin(), given.end(), [](const Node &each) { return each.is("Constant"); });
    isPart = isEntry || isGet || (node.is("Attribute") && !meaningOf(node) && !variableOfModule(node));
    if (isPart)
      node = isGet ? node["func"]["value"] : node["value"];
  }
  if (const std::optional<Name> id = variableOfModule(node))
    operands.push_back(use(global(node, *id), node, true));
  if (!node.is("Name"))
    return operands;
  const std::string name = node.text("id");
  const Reg variable = name == selfName && !isLocal(name) ? loadName(node, name) : variableOf(node, name);
  if (variable != NoReg)
    operands.push_back(use(variable, node, true));
  return operands;
}

Reg FunctionLowering::loadName(const Node &node, const std::string &name) {
  if (!name.empty() && name == selfName && !isLocal(name)) {
    Fact self = fact(FactKind::This, node);
    self.type = className;
    return emit(std::move(self));
  }
  const Reg variable = variableOf(node, name);
  if (variable == NoReg)
    return loadMeaning(node, *meaningOf(node));
  Fact load = fact(FactKind::Load, node);
  load.operands.push_back(use(variable, node, true));
  return emit(std::move(load));
}

void FunctionLowering::storeName(const Node &node, const std::string &name, const Operand &value) {
  const Reg cell = cellOf(node, name);
  if (const auto local = locals.find(name);
      cell == NoReg && local != locals.end() && !scope.declaredGlobal.count(name)) {
    storeLocal(local->second, value, node);
    return;
  }
  Fact store = fact(FactKind::Store, node);
  if (cell != NoReg) {
    store.operands = {use(cell, node, true), value};
    block().facts.push_back(std::move(store));
    return;
  }
  Fact address = fact(FactKind::Global, node);
  address.name = parts.module.idOf(name);
  if (isClassBody) {
    Fact self = fact(FactKind::This, node);
    address = fact(FactKind::Field, node);
    address.name = Name(name);
    address.operands.push_back(use(emit(std::move(self)), node, true));
  } else if (scope.declaredNonlocal.count(name)) {
    capture(name);
    Fact self = fact(FactKind::This, node);
    address = fact(FactKind::Field, node);
    address.name = fieldOfCapture(name);
    address.operands.push_back(use(emit(std::move(self)), node, true));
  } else {
    Global &global = parts.unit.globals[address.name];
    global.id = address.name;
    global.name = Name(name);
    if (!global.where.valid())
      global.where = node.where();
  }
  store.operands = {use(emit(std::move(address)), node, true), value};
  block().facts.push_back(std::move(store));
}

} // namespace devicetidy::python
