#include "analyzer/frontend/Types.h"

#include "analyzer/frontend/Compat.h"

#include "clang/AST/DeclTemplate.h"
#include "clang/Basic/SourceManager.h"

namespace devicetidy::frontend {

using namespace clang;
using devicetidy::Type;

Types::Types(ASTContext &context, SourceFiles &source, Naming &naming, std::map<Name, Type> &types)
    : context(context), source(source), naming(naming), types(types), paths(context),
      policy(context.getPrintingPolicy()) {
  policy.FullyQualifiedName = true;
  policy.SuppressScope = false;
  policy.SuppressTagKeyword = true;
  policy.Bool = true;
  policy.UsePreferredNames = false;
  policy.SuppressDefaultTemplateArgs = true;
  policy.Callbacks = &paths;
  compat::dropInlineNamespaces(policy);
}

bool Types::isProjectRecord(const CXXRecordDecl *record, SourceFiles &source) {
  const CXXRecordDecl *written = record;
  if (const CXXRecordDecl *pattern = record->getTemplateInstantiationPattern())
    written = pattern;
  return source.inProject(written);
}

Name Types::id(const TagDecl *tag) { return id(compat::typeOfTag(context, tag)); }

Name Types::id(QualType type) {
  if (type.isNull())
    return {};
  QualType canonical = context.getCanonicalType(type.getNonReferenceType());
  Qualifiers ignored;
  if (canonical->isArrayType())
    canonical = context.getUnqualifiedArrayType(canonical, ignored);
  canonical = canonical.getUnqualifiedType();
  auto found = ids.find(canonical.getTypePtr());
  if (found != ids.end())
    return found->second;

  std::string text = canonical.getAsString(policy);
  // Entities without linkage are different ones in every file that declares them.
  constexpr llvm::StringLiteral anonymous = "(anonymous namespace)";
  Name mainFile = source.path(context.getSourceManager().getMainFileID());
  std::string marked = "(anonymous namespace in " + mainFile.str() + ")";
  for (std::size_t at = 0; (at = text.find(anonymous.data(), at)) != std::string::npos; at += marked.size())
    text.replace(at, anonymous.size(), marked);

  Name name(text);
  ids[canonical.getTypePtr()] = name;
  auto [place, isNew] = types.try_emplace(name);
  Type &entry = place->second;
  if (isNew) {
    entry.id = name;
    fill(entry, canonical);
  }
  return name;
}

void Types::fill(Type &entry, QualType type) {
  if (const auto *record = type->getAsCXXRecordDecl()) {
    entry.kind = TypeKind::Record;
    fillRecord(entry, record);
  } else if (type->isVoidType()) {
    entry.kind = TypeKind::Void;
  } else if (type->isBooleanType()) {
    entry.kind = TypeKind::Bool;
  } else if (const auto *enumeration = type->getAs<EnumType>()) {
    entry.kind = TypeKind::Enum;
    entry.templateName = naming.qualified(enumeration->getDecl());
  } else if (type->isIntegralType(context)) {
    entry.kind = TypeKind::Int;
  } else if (type->isFloatingType()) {
    entry.kind = TypeKind::Float;
  } else if (type->isPointerType()) {
    entry.kind = TypeKind::Pointer;
    entry.pointee = id(type->getPointeeType());
  } else if (type->isNullPtrType()) {
    entry.kind = TypeKind::Pointer;
  } else if (const ArrayType *array = context.getAsArrayType(type)) {
    entry.kind = TypeKind::Array;
    entry.pointee = id(array->getElementType());
    if (const auto *constant = dyn_cast<ConstantArrayType>(array))
      entry.numbers.push_back(static_cast<std::int64_t>(constant->getSize().getLimitedValue()));
  } else if (type->isFunctionType()) {
    entry.kind = TypeKind::Function;
  }
}

std::vector<Name> Types::typeArguments(llvm::ArrayRef<TemplateArgument> arguments) {
  std::vector<Name> result;
  for (const TemplateArgument &argument : arguments) {
    if (argument.getKind() == TemplateArgument::Pack) {
      std::vector<Name> inner = typeArguments(argument.pack_elements());
      result.insert(result.end(), inner.begin(), inner.end());
    } else if (argument.getKind() == TemplateArgument::Type) {
      result.push_back(id(argument.getAsType()));
    }
  }
  return result;
}

std::vector<std::int64_t> Types::numberArguments(llvm::ArrayRef<TemplateArgument> arguments) {
  std::vector<std::int64_t> result;
  for (const TemplateArgument &argument : arguments) {
    if (argument.getKind() == TemplateArgument::Pack) {
      std::vector<std::int64_t> inner = numberArguments(argument.pack_elements());
      result.insert(result.end(), inner.begin(), inner.end());
    } else if (argument.getKind() == TemplateArgument::Integral) {
      result.push_back(toInt64(argument.getAsIntegral()));
    }
  }
  return result;
}

void Types::fillRecord(Type &entry, const CXXRecordDecl *record) {
  entry.templateName = naming.qualified(record);
  entry.isLambda = record->isLambda();
  entry.isProject = isProjectRecord(record, source);
  if (const auto *specialization = dyn_cast<ClassTemplateSpecializationDecl>(record)) {
    entry.args = typeArguments(specialization->getTemplateArgs().asArray());
    entry.numbers = numberArguments(specialization->getTemplateArgs().asArray());
  }
  const CXXRecordDecl *definition = record->getDefinition();
  // A class without a definition here may have one in another unit: link prefers the entry that has it.
  if (!definition)
    return;
  // An instantiation that is asked for has the place of the request, which only one unit has.
  const CXXRecordDecl *written = definition->getTemplateInstantiationPattern();
  entry.where = source.token((written ? written : definition)->getLocation());
  if (definition->isDependentContext())
    return;
  entry.isPolymorphic = definition->isPolymorphic();
  entry.isAbstract = definition->isAbstract();
  for (const CXXBaseSpecifier &base : definition->bases())
    entry.bases.push_back(id(base.getType()));
  if (entry.isProject || hasPlainFields(definition))
    addFields(entry, definition);
  if (entry.isProject && !entry.isLambda)
    newProjectRecords.push_back(definition);
}

bool Types::hasPlainFields(const CXXRecordDecl *record) const {
  if (record->isPolymorphic() || record->isUnion() || record->field_empty())
    return false;
  for (const FieldDecl *field : record->fields())
    if (field->getAccess() != AS_public)
      return false;
  return true;
}

namespace {

/// Fields of closures carry the names of the variables they capture.
Name fieldName(const FieldDecl *field) {
  const auto *record = dyn_cast<CXXRecordDecl>(field->getParent());
  if (!record || !record->isLambda())
    return Name(field->getNameAsString());
  llvm::DenseMap<const ValueDecl *, FieldDecl *> captures;
  FieldDecl *self = nullptr;
  record->getCaptureFields(captures, self);
  if (field == self)
    return "this";
  for (auto [variable, captured] : captures)
    if (captured == field)
      return captureName(record, variable);
  return {};
}

} // namespace

void Types::addFields(Type &entry, const RecordDecl *record) {
  for (const FieldDecl *field : record->fields()) {
    if (field->isAnonymousStructOrUnion()) {
      // Its members are used as members of the enclosing class.
      if (const auto *inner = field->getType()->getAsCXXRecordDecl())
        addFields(entry, inner);
      continue;
    }
    Field result;
    result.name = fieldName(field);
    result.type = id(field->getType());
    result.isReference = field->getType()->isReferenceType();
    result.isPrivate = isHidden(field);
    result.where = source.token(field->getLocation());
    entry.fields.push_back(result);
  }
}

std::vector<const CXXRecordDecl *> Types::takeNewProjectRecords() {
  std::vector<const CXXRecordDecl *> result;
  result.swap(newProjectRecords);
  return result;
}

} // namespace devicetidy::frontend
