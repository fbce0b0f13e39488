#include "analyzer/python/Lower.h"

#include "analyzer/facts/Language.h"
#include "analyzer/facts/NameParts.h"
#include "analyzer/python/FunctionLowering.h"

#include <algorithm>
#include <set>

namespace devicetidy::python {
namespace {

// The release that operators are looked up in: a file does not say with which it is run.
constexpr int torchMajor = 2, torchMinor = 6;

void addType(Unit &unit, Name id, TypeKind kind, std::vector<Name> args = {}, std::vector<Name> bases = {},
             std::string_view templateName = {}) {
  Type &type = unit.types[id];
  if (!type.id.empty())
    return;
  type.id = id;
  type.kind = kind;
  type.templateName = templateName.empty() ? id : Name(templateName);
  type.args = std::move(args);
  type.bases = std::move(bases);
}

// The types that values of Python programs have in LibTorch.
void addStandardTypes(Unit &unit) {
  const Name tensor("at::Tensor"), pair("std::tuple<at::Tensor, at::Tensor>");
  addType(unit, "bool", TypeKind::Bool);
  addType(unit, "long", TypeKind::Int);
  addType(unit, "double", TypeKind::Float);
  addType(unit, tensor, TypeKind::Record);
  addType(unit, "c10::Device", TypeKind::Record);
  addType(unit, pair, TypeKind::Record, {tensor, tensor}, {}, "std::tuple");
  addType(unit, "std::tuple<at::Tensor, at::Tensor, at::Tensor>", TypeKind::Record, {tensor, tensor, tensor},
          {}, "std::tuple");
  addType(unit, "std::tuple<at::Tensor, std::tuple<at::Tensor, at::Tensor>>", TypeKind::Record,
          {tensor, pair}, {}, "std::tuple");
  addType(unit, "std::vector<at::Tensor>", TypeKind::Record, {tensor}, {}, "std::vector");
  addType(unit, "std::vector<long>", TypeKind::Record, {"long"}, {}, "std::vector");
  addType(unit, "torch::nn::Module", TypeKind::Record);
  for (const char *made : {"python::list", "python::dict"})
    addType(unit, made, TypeKind::Other);
}

// Modules of torch.nn that the file names.
void addModuleTypes(Unit &unit, const Node &tree) {
  const auto add = [&](const std::string &name) {
    if (!name.empty() && name[0] >= 'A' && name[0] <= 'Z' && name != "Module" && name != "Parameter")
      addType(unit, Name("torch::nn::" + name + "Impl"), TypeKind::Record, {}, {"torch::nn::Module"});
  };
  std::function<void(const Node &)> visit = [&](const Node &node) {
    if (node.is("Attribute"))
      add(node.text("attr"));
    if (node.is("ImportFrom") && startsWith(node.text("module"), "torch.nn"))
      for (const Node &alias : node.list("names"))
        add(alias.text("name"));
    for (const Node &child : node.children())
      visit(child);
  };
  visit(tree);
}

bool hasForward(const Type &type) {
  return std::any_of(type.methods.begin(), type.methods.end(),
                     [](Name id) { return endsWith(id.view(), ".forward"); });
}

// Classes of libraries that stand behind classes of the program: those of torch.nn and what is known to
// derive from them.
void resolveBases(Unit &unit) {
  static const std::set<std::string> modules = {
      "torch.nn.Module",           "torch.nn.modules.module.Module",    "pytorch_lightning.LightningModule",
      "lightning.LightningModule", "lightning.pytorch.LightningModule", "transformers.PreTrainedModel",
      "torch.jit.ScriptModule"};
  for (auto &[id, type] : unit.types)
    for (Name &base : type.bases) {
      if (!startsWith(base.view(), "python:"))
        continue;
      const std::string dotted(base.view().substr(std::string_view("python:").size()));
      const std::string last = dotted.substr(dotted.rfind('.') + 1);
      // Of a class of a library that is not known its methods say what it is.
      if (modules.count(dotted) || (!startsWith(dotted, "torch.") && hasForward(type)))
        base = Name("torch::nn::Module");
      else if (startsWith(dotted, "torch.nn."))
        base = Name("torch::nn::" + last + "Impl");
    }
}

// What functions of a script find when it is not run itself: its definitions, and what it assigns. What is
// made of names that its other statements use is left out, for these may have changed it, and what it changes
// elsewhere, which is done when it is run.
std::vector<Node> definitionsOf(const Module &module, const std::vector<Node> &body) {
  std::vector<Node> definitions;
  std::set<std::string> used;
  for (const Node &each : body) {
    const std::vector<Node> targets = each.list("targets");
    const bool assigns = isOneOf(each.kind(), {"Assign", "AnnAssign"}) &&
                         std::none_of(targets.begin(), targets.end(),
                                      [](const Node &target) { return target.is("Attribute"); });
    const bool defines =
        isOneOf(each.kind(), {"FunctionDef", "AsyncFunctionDef", "ClassDef", "Import", "ImportFrom"});
    std::set<std::string> names;
    if (assigns)
      addNames(each["value"], names);
    const bool isChanged = std::any_of(names.begin(), names.end(), [&](const std::string &name) {
      return used.count(name) && !Modules::find(module, name);
    });
    if (defines || (assigns && !isChanged))
      definitions.push_back(each);
    else
      addNames(each, used);
  }
  return definitions;
}

} // namespace

Unit lower(const Module &module) {
  Unit unit;
  unit.mainFile = module.path;
  unit.joining = module.isModel                             ? Joining::Everywhere
                 : module.packaging == Packaging::Installed ? Joining::Packaged
                                                            : Joining::Imported;
  if (!module.isModel)
    unit.files = {Name(module.path)};
  unit.torchMajor = torchMajor;
  unit.torchMinor = torchMinor;
  addStandardTypes(unit);
  const Node tree = module.file->module();
  addModuleTypes(unit, tree);
  const std::vector<Node> body = tree.list("body");
  if (!module.isModel && !isPython(module.path)) {
    FunctionLowering data({unit, module}, nullptr, {}, {});
    data.lowerData(body.front()["value"]);
    return unit;
  }
  FunctionLowering start({unit, module}, nullptr, {}, {});
  const bool isRunOnly = module.isScript && !module.asksWhetherMain;
  start.lowerBody(tree, isRunOnly ? definitionsOf(module, body) : body,
                  module.idOf(std::string(importedBody)), false);
  if (!module.isModel)
    unit.globalInit = start.id();
  if (module.isScript) {
    FunctionLowering main({unit, module}, nullptr, {}, {});
    main.lowerBody(tree, body, module.idOf("@main"), true);
  }
  resolveBases(unit);
  return unit;
}

} // namespace devicetidy::python
