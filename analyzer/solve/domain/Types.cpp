#include "analyzer/solve/domain/Types.h"

#include "analyzer/facts/Language.h"
#include "analyzer/facts/NameParts.h"
#include "analyzer/models/Models.h"

#include <algorithm>
#include <map>
#include <string>

namespace devicetidy {
namespace {

TypeClass classOfKind(std::string_view kind) {
  static const std::map<std::string_view, TypeClass> classes = {
      {"tensor", TypeClass::Tensor},     {"device", TypeClass::Device},
      {"options", TypeClass::Options},   {"list", TypeClass::List},
      {"map", TypeClass::Map},           {"pair", TypeClass::Pair},
      {"tuple", TypeClass::Tuple},       {"pointer", TypeClass::Pointer},
      {"holder", TypeClass::Holder},     {"any_module", TypeClass::AnyModule},
      {"optional", TypeClass::Optional}, {"wrapper", TypeClass::Wrapper},
      {"scalar", TypeClass::Scalar},     {"function", TypeClass::Function},
      {"string", TypeClass::String},     {"variant", TypeClass::Variant},
      {"example", TypeClass::Example},   {"nothing", TypeClass::Nothing}};
  auto found = classes.find(kind);
  return found == classes.end() ? TypeClass::Other : found->second;
}

constexpr int maxBaseDepth = 8;
const Name character("char"), constCharacter("const char");
const Name firstPart("first"), secondPart("second"), dataPart("data"), targetPart("target");
constexpr std::string_view recordKind = "record";

} // namespace

Name partName(TypeClass kind, std::size_t number) {
  if (kind == TypeClass::Tuple)
    return Name(std::to_string(number));
  if (kind == TypeClass::Pair)
    return number == 0 ? firstPart : secondPart;
  return number == 0 ? dataPart : targetPart;
}

TypeClass Types::classOf(Name type) const {
  auto found = classes.find(type);
  if (found != classes.end())
    return found->second;
  classes[type] = TypeClass::Other; // ends recursion over malformed types
  return classes[type] = compute(type);
}

bool Types::hasOneValue(Name type) const {
  const Type *known = program.type(type);
  return known && known->kind == TypeKind::Function && known->templateName == type;
}

TypeClass Types::compute(Name id) const {
  const Type *type = program.type(id);
  if (!type)
    return classOfKind(models::typeKind(id.view()));
  switch (type->kind) {
  case TypeKind::Bool:
  case TypeKind::Int:
  case TypeKind::Float:
    return TypeClass::Scalar;
  case TypeKind::Enum:
    return models::typeKind(id.view()).empty() ? TypeClass::Scalar : classOfKind(models::typeKind(id.view()));
  case TypeKind::Pointer: {
    const Type *pointee = program.type(type->pointee);
    if (type->pointee == character || type->pointee == constCharacter)
      return TypeClass::String;
    return pointee && pointee->kind == TypeKind::Function ? TypeClass::Function : TypeClass::Pointer;
  }
  case TypeKind::Array:
    return TypeClass::List;
  case TypeKind::Function:
    return TypeClass::Function;
  case TypeKind::Record: {
    TypeClass known = classOfKind(models::typeKind(type->templateName.view()));
    if (known != TypeClass::Other)
      return known;
    if (type->isLambda)
      return TypeClass::Function;
    for (Name base : type->bases) {
      TypeClass inherited = classOf(base);
      if (inherited != TypeClass::Record && inherited != TypeClass::Other)
        return inherited;
    }
    return TypeClass::Record;
  }
  default:
    return TypeClass::Other;
  }
}

std::string_view Types::kindOf(Name id) const {
  const Type *type = program.type(id);
  if (const std::string_view kind = models::typeKind(type ? type->templateName.view() : id.view());
      !kind.empty())
    return kind;
  if (!type)
    return {};
  for (Name base : type->bases)
    if (base != id)
      if (const std::string_view kind = kindOf(base); !kind.empty() && kind != recordKind)
        return kind;
  if (isModule(id))
    return "module";
  static const std::map<TypeClass, std::string_view> kinds = {
      {TypeClass::Device, "device"},     {TypeClass::Scalar, "scalar"}, {TypeClass::String, "string"},
      {TypeClass::Function, "function"}, {TypeClass::List, "list"},     {TypeClass::Pointer, "pointer"},
      {TypeClass::Record, recordKind}};
  const auto found = kinds.find(classOf(id));
  return found == kinds.end() ? std::string_view() : found->second;
}

// Itself, or in an object with the parameters of a launch.
bool Types::takesStream(const Fact &call) const {
  const auto isStream = [&](Name id) {
    const Type *type = program.type(id);
    return models::hasRole((type && type->kind == TypeKind::Pointer ? type->pointee : id).view(), "stream");
  };
  return std::any_of(call.operands.begin(), call.operands.end(), [&](const Operand &operand) {
    const Type *type = program.type(operand.type);
    if (type && type->kind == TypeKind::Pointer && !isStream(operand.type))
      type = program.type(type->pointee);
    return isStream(operand.type) || (type && type->isProject &&
                                      std::any_of(type->fields.begin(), type->fields.end(),
                                                  [&](const Field &field) { return isStream(field.type); }));
  });
}

Name Types::inner(Name id) const {
  const Type *type = program.type(id);
  for (int depth = 0; type && depth < maxBaseDepth; ++depth) {
    if (type->kind == TypeKind::Pointer || type->kind == TypeKind::Array)
      return type->pointee;
    if (classOfKind(models::typeKind(type->templateName.view())) == TypeClass::Map)
      return type->args.size() > 1 ? type->args[1] : Name();
    if (!models::typeKind(type->templateName.view()).empty())
      return type->args.empty() ? Name() : type->args[0];
    const Type *next = nullptr;
    for (Name base : type->bases)
      if (classOf(base) != TypeClass::Record && classOf(base) != TypeClass::Other)
        next = program.type(base);
    type = next;
  }
  return {};
}

Name Types::templateOf(Name id) const {
  const Type *type = program.type(id);
  return type ? type->templateName : id;
}

std::vector<Name> Types::parts(Name id) const {
  const Type *type = program.type(id);
  return type ? type->args : std::vector<Name>();
}

const Field *Types::field(Name id, Name field) const {
  const Type *type = program.type(id);
  if (!type)
    return nullptr;
  for (const Field &own : type->fields)
    if (own.name == field)
      return &own;
  for (Name base : type->bases)
    if (base != id)
      if (const Field *inherited = this->field(base, field))
        return inherited;
  return nullptr;
}

Name Types::fieldType(Name id, Name name) const {
  const Field *found = field(id, name);
  if (found)
    return found->type;
  if (classOf(id) == TypeClass::Pair || classOf(id) == TypeClass::Example) {
    std::vector<Name> types = parts(id);
    const std::size_t number = name == partName(classOf(id), 1);
    if (number < types.size())
      return types[number];
    return "at::Tensor";
  }
  return {};
}

const std::vector<Name> &Types::derivedFrom(Name id) const {
  const auto [entry, isNew] = derived.try_emplace(id);
  if (isNew)
    for (const auto &[other, type] : program.types)
      if (other != id && derivesFrom(other, id.view()))
        entry->second.push_back(other);
  return entry->second;
}

bool Types::isHidden(const Function &function) const {
  const auto isPrivateClass = [](Name type) {
    const std::string_view name = type.view();
    return isPrivateName(name.substr(name.find_last_of(".:") + 1));
  };
  if (!function.isPrivate || !isPython(function.where.file.view()) || !isPrivateClass(function.className) ||
      isPrivateName(lastPart(function.name.view())))
    return function.isPrivate;
  const std::vector<Name> &heirs = derivedFrom(function.className);
  return std::all_of(heirs.begin(), heirs.end(), isPrivateClass);
}

// A base of several classes stands behind the last of them.
const std::vector<Name> &Types::lookupOrder(Name id) const {
  if (const auto known = orders.find(id); known != orders.end())
    return known->second;
  orders[id] = {id}; // for a class that is its own base
  std::vector<Name> order = {id};
  if (const Type *type = program.type(id))
    for (const Name base : type->bases)
      for (const Name each : std::vector<Name>(lookupOrder(base))) {
        order.erase(std::remove(order.begin() + 1, order.end(), each), order.end());
        if (each != id)
          order.push_back(each);
      }
  return orders[id] = std::move(order);
}

bool Types::hasUnknownBase(Name id) const {
  const Type *type = program.type(id);
  return type && std::any_of(type->bases.begin(), type->bases.end(), [&](Name base) {
           return startsWith(base.view(), "python:") || (base != id && hasUnknownBase(base));
         });
}

bool Types::isPointer(Name id) const {
  const Type *type = program.type(id);
  return type && type->kind == TypeKind::Pointer;
}

bool Types::isPrivateField(Name id, Name name) const {
  const Field *found = field(id, name);
  return found && found->isPrivate;
}

bool Types::holdsTensors(Name type) const {
  const TypeClass kind = classOf(type);
  if (kind == TypeClass::Optional || kind == TypeClass::List)
    return !inner(type).empty() && holdsTensors(inner(type));
  if (kind == TypeClass::Tuple || kind == TypeClass::Pair) {
    const std::vector<Name> held = parts(type);
    return std::any_of(held.begin(), held.end(), [&](Name part) { return holdsTensors(part); });
  }
  return kind == TypeClass::Tensor;
}

bool Types::leadsToTensors(Name type, unsigned depth) const {
  constexpr unsigned deepest = 4;
  if (holdsTensors(type) || depth == deepest)
    return holdsTensors(type);
  const auto leads = [&](Name part) { return leadsToTensors(part, depth + 1); };
  const Type *known = program.type(type);
  if (!known)
    return false;
  const std::vector<Name> held = parts(type);
  return (!inner(type).empty() && leads(inner(type))) || std::any_of(held.begin(), held.end(), leads) ||
         std::any_of(known->fields.begin(), known->fields.end(),
                     [&](const Field &field) { return leads(field.type); });
}

bool Types::isInteger(Name type) const {
  const Type *known = program.type(type);
  return known && (known->kind == TypeKind::Int || known->kind == TypeKind::Enum);
}

bool Types::derivesFrom(Name id, std::string_view templateName) const {
  const Type *type = program.type(id);
  if (!type)
    return id.view() == templateName;
  if (type->templateName.view() == templateName)
    return true;
  for (Name base : type->bases)
    if (base != id && derivesFrom(base, templateName))
      return true;
  return false;
}

bool Types::isProject(Name id) const {
  const Type *type = program.type(id);
  return type && type->isProject;
}

const models::Module *Types::builtinModule(Name id) const {
  const Type *type = program.type(id);
  return models::module(type ? type->templateName.view() : id.view());
}

const models::Module *Types::builtinModuleBase(Name id) const {
  if (const models::Module *own = builtinModule(id))
    return own;
  if (const Type *type = program.type(id))
    for (Name base : type->bases)
      if (base != id)
        if (const models::Module *inherited = builtinModuleBase(base))
          return inherited;
  return nullptr;
}

} // namespace devicetidy
