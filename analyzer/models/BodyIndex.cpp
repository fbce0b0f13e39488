#include "analyzer/models/BodyIndex.h"

namespace devicetidy::models {

BodyIndex::BodyIndex(std::vector<Unit> units) : program(link(std::move(units))) {
  for (Name id : program.order)
    if (const Function *function = program.function(id);
        function && function->hasBody && function->className.empty())
      byName[function->name].push_back(function);
  for (const auto &[id, type] : program.types)
    if (type.kind == TypeKind::Record) {
      classes.insert(type.templateName);
      addMethods(type.templateName, type);
    }
}

void BodyIndex::addMethods(Name owner, const Type &type) {
  std::map<Name, std::vector<const Function *>> found;
  for (Name id : type.methods)
    if (const Function *method = program.function(id); method && method->hasBody) {
      const std::string_view name = method->name.view();
      found[Name(owner.str() + std::string(name.substr(name.rfind("::"))))].push_back(method);
    }
  for (auto &[name, methods] : found)
    byName.try_emplace(name, std::move(methods));
  for (Name base : type.bases)
    if (const Type *record = program.type(base))
      addMethods(owner, *record);
}

} // namespace devicetidy::models
