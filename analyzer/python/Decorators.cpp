// Which decorators make something else of a function, or register it: functions, objects and classes of the
// project.
#include "analyzer/python/Modules.h"

#include "analyzer/facts/NameParts.h"

#include <algorithm>

namespace devicetidy::python {

namespace {

bool isDispatcher(const Module &module, const Node &decorator) {
  const bool isMember = decorator.is("Attribute") && decorator["value"].is("Name");
  const Meaning *meaning =
      Modules::find(module, isMember ? decorator["value"].text("id") : decorator.text("id"));
  return meaning && meaning->kind == Meaning::Kind::Library &&
         meaning->name + (isMember ? "." + decorator.text("attr") : "") == "functools.singledispatch";
}

} // namespace

bool Modules::registersCase(const Module &module, const Node &decorator) {
  const Node base = decorator.is("Call") ? decorator["func"] : decorator;
  if (!base.is("Attribute") || base.text("attr") != "register")
    return false;
  const std::vector<Node> body = module.file->module().list("body");
  return std::any_of(body.begin(), body.end(), [&](const Node &statement) {
    const std::vector<Node> written = statement.list("decorator_list");
    return statement.is("FunctionDef") && statement.text("name") == base["value"].text("id") &&
           std::any_of(written.begin(), written.end(),
                       [&](const Node &each) { return isDispatcher(module, each); });
  });
}

void Modules::addObjects() {
  for (auto &[path, module] : modules)
    for (const Node &statement : module.file->module().list("body")) {
      const Node made = statement["value"]["func"];
      const Meaning *owner = made.is("Attribute") ? find(module, made["value"].text("id")) : nullptr;
      const Meaning *meaning = made.is("Name")          ? find(module, made.text("id"))
                               : owner && owner->module ? find(*owner->module, made.text("attr"))
                                                        : nullptr;
      if (statement.is("Assign") && meaning && meaning->kind == Meaning::Kind::Class)
        for (const Node &target : statement.list("targets"))
          module.objects.insert(target.text("id"));
    }
}

// Does `node` name an object of the project, of this module or of another?
static bool namesObject(const Module &module, const Node &node) {
  const bool isMember = node.is("Attribute");
  const std::string name = node.text(isMember ? "attr" : "id");
  const Meaning *meaning = Modules::find(module, isMember ? node["value"].text("id") : name);
  if (!meaning)
    return !isMember && module.objects.count(name);
  return meaning->kind == Meaning::Kind::Module &&
         meaning->module->objects.count(isMember ? name : meaning->name);
}

std::vector<Node> Modules::decorators(const Module &module, const Node &definition) {
  std::vector<Node> applied;
  for (const Node &decorator : definition.list("decorator_list")) {
    const Node base = decorator.is("Call") ? decorator["func"] : decorator;
    const bool isMember = base.is("Attribute") && base["value"].is("Name");
    const Meaning *owner = isMember ? find(module, base["value"].text("id")) : nullptr;
    const Module *in = isMember ? (owner ? owner->module : nullptr) : &module;
    const Meaning *meaning = in ? find(*in, base.text(isMember ? "attr" : "id")) : nullptr;
    const bool isOfProject = meaning && meaning->kind == Meaning::Kind::Function;
    const bool isOfObject = namesObject(module, base) || namesObject(module, base["value"]) ||
                            (isMember && owner && owner->kind == Meaning::Kind::Class);
    if ((isOfProject || isOfObject || isDispatcher(module, base) || registersCase(module, base)) &&
        !module.isModel)
      applied.insert(applied.begin(), decorator);
  }
  return applied;
}

// @torch.no_grad() and its like run the function as it is.
bool Modules::isOfTorch(const Module &module, const Node &decorator) {
  Node base = decorator.is("Call") ? decorator["func"] : decorator;
  while (base.is("Attribute"))
    base = base["value"];
  const Meaning *meaning = base.is("Name") ? find(module, base.text("id")) : nullptr;
  return meaning && meaning->kind == Meaning::Kind::Library && startsWith(meaning->name, "torch");
}

// What a function of the project makes of a function is no definition: a variable holds it.
void Modules::forgetDecorated() {
  std::map<std::string, std::pair<const Module *, std::string>> decorated; // by what the function is called
  for (auto &[path, module] : modules)
    for (const Node &statement : module.file->module().list("body"))
      if (isOneOf(statement.kind(), {"FunctionDef", "AsyncFunctionDef"}) &&
          !decorators(module, statement).empty()) {
        const std::string name = statement.text("name");
        decorated[module.idOf(name).str()] = {&module, name};
      }
  for (auto &[path, module] : modules)
    for (auto meaning = module.meanings.begin(); meaning != module.meanings.end();) {
      const auto found = meaning->second.kind == Meaning::Kind::Function
                             ? decorated.find(meaning->second.name)
                             : decorated.end();
      const bool isOwn = found != decorated.end() && found->second.first == &module;
      if (found != decorated.end() && !isOwn)
        meaning->second = {Meaning::Kind::Module, found->second.second, found->second.first};
      meaning = isOwn ? module.meanings.erase(meaning) : std::next(meaning);
    }
}

} // namespace devicetidy::python
