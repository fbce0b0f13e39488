#include "analyzer/solve/engine/ExpressionWrites.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/models/Models.h"

#include <map>

namespace devicetidy {

bool assigns(const Fact &fact) {
  if (fact.kind == FactKind::Store || fact.kind == FactKind::Construct)
    return true;
  if (fact.kind != FactKind::Call || !fact.hasObject)
    return false;
  return models::hasRole(lastPart(fact.name.view()), "assigns");
}

bool movesModule(const Fact &fact) {
  static constexpr std::string_view move = "module_to";
  if (fact.kind != FactKind::Call || !fact.hasObject)
    return false;
  const std::string_view name = fact.name.view();
  return models::effect(name, move) ||
         ((!fact.target.empty() || isLateBound(fact)) &&
          models::effect("torch::nn::Module::" + std::string(lastPart(name)), move));
}

namespace {

// Does the call change argument `i` of a project function, or the object of its method? What a method with a
// body does to its object is seen there, field by field.
bool mayChange(const Program &program, const Fact &fact, std::size_t i) {
  const Function *callee = fact.target.empty() ? nullptr : program.function(fact.target);
  if (!callee || fact.kind != FactKind::Call)
    return false;
  if (fact.hasObject && i == 0)
    return !callee->isConst && !callee->isConstructor && !callee->hasBody;
  const std::size_t parameter = i - (fact.hasObject ? 1 : 0);
  return parameter < callee->paramCount && callee->locals[parameter].isReference &&
         !callee->locals[parameter].isConst;
}

// Code that could not be parsed may do anything with what it names.
bool mayDoAnything(const Fact &fact, std::size_t i) {
  return fact.kind == FactKind::Opaque && fact.operands[i].isWritable;
}

// No module is behind the `kGpu` of `layers.back()->to(kGpu)`.
bool isPlace(const Types &types, Name type) {
  const TypeClass kind = types.classOf(type);
  return kind == TypeClass::Device || kind == TypeClass::Options || kind == TypeClass::Scalar;
}

Member memberOf(const Fact &field) {
  return {field.operands.empty() ? Name() : field.operands[0].type, field.name};
}

// What the modules that a full expression moves are reached through.
Way waysToMoved(const Types &types, const std::vector<const Fact *> &expression) {
  std::map<Reg, Way> ways;
  Way moved;
  Way all; // what a conditional or another detour leads to is not told apart
  static const Name calls("python::call");
  for (const Fact *fact : expression) {
    Way way;
    if (fact->kind == FactKind::Global && !isPlace(types, fact->type))
      way.globals.insert(fact->name);
    if (fact->kind == FactKind::Field && !isPlace(types, fact->type))
      way.fields.insert(memberOf(*fact));
    all.add(way);
    // What a call gives is not behind what is called, nor a part of what it passes: `models[name](config)` is
    // new.
    const bool isMade = isLateBound(*fact) && fact->name == calls;
    for (std::size_t i = 0; i < fact->operands.size() && !isMade; ++i)
      if (auto known = ways.find(fact->operands[i].reg); known != ways.end())
        way.add(known->second);
    if (movesModule(*fact)) {
      const Way &object = ways[fact->operands[0].reg];
      const bool isDetour = object.fields.empty() && object.globals.empty() && !isLateBound(*fact);
      moved.add(isDetour ? all : object);
    } else if (fact->kind == FactKind::Opaque) {
      moved.add(way);
    } else if (fact->result != NoReg) {
      ways[fact->result] = std::move(way);
    }
  }
  return moved;
}

} // namespace

namespace {

// list[i], list.back(), and the element that a loop over the list is at
bool givesElement(const Types &types, const Fact &fact) {
  static const Name next("__range_next");
  return fact.kind == FactKind::Call && fact.resultIsAddress && !fact.operands.empty() &&
         (fact.name == next || (fact.hasObject && types.classOf(fact.operands[0].type) == TypeClass::List));
}

// The registers of an expression that lead to fields, and the references that it binds to them.
std::map<Reg, Member> fieldsBehind(const Types &types, const std::vector<const Fact *> &expression,
                                   References &references) {
  std::map<Reg, Member> fields;
  std::map<Reg, std::int64_t> locals;
  for (const Fact *fact : expression) {
    if (fact->kind == FactKind::Field)
      fields[fact->result] = memberOf(*fact);
    if (fact->kind == FactKind::Local)
      locals[fact->result] = fact->number;
    const auto local = fact->operands.empty() ? locals.end() : locals.find(fact->operands[0].reg);
    if (fact->kind == FactKind::Load && local != locals.end())
      if (const auto bound = references.find(local->second); bound != references.end())
        fields[fact->result] = bound->second;
    if (fact->kind == FactKind::Store && local != locals.end() && fact->operands[1].isAddress)
      if (const auto field = fields.find(fact->operands[1].reg); field != fields.end())
        references[local->second] = field->second;
    if (givesElement(types, *fact))
      if (const auto field = fields.find(fact->operands[0].reg); field != fields.end())
        fields[fact->result] = field->second;
  }
  return fields;
}

} // namespace

Way scanExpression(const Program &program, const Types &types, const std::vector<const Fact *> &expression,
                   References &references) {
  Way written;
  const std::map<Reg, Member> fields = fieldsBehind(types, expression, references);
  std::map<Reg, Name> globals;
  bool moves = false;
  for (const Fact *fact : expression) {
    if (fact->kind == FactKind::Global)
      globals[fact->result] = fact->name;
    if (fact->kind == FactKind::Field && !fact->operands.empty())
      if (auto base = globals.find(fact->operands[0].reg); base != globals.end())
        globals[fact->result] = base->second;
    moves |= movesModule(*fact) || (fact->kind == FactKind::Opaque && !fact->operands.empty());
  }
  for (const Fact *fact : expression)
    for (std::size_t i = 0; i < fact->operands.size(); ++i) {
      const Reg reg = fact->operands[i].reg;
      const bool assigned = (i == 0 && assigns(*fact)) || mayDoAnything(*fact, i);
      if (const Type *object = program.type(fact->operands[i].type); object && mayDoAnything(*fact, i))
        for (const Field &field : object->fields)
          written.fields.insert({object->id, field.name});
      if (auto field = fields.find(reg); assigned && field != fields.end())
        written.fields.insert(field->second);
      if (auto global = globals.find(reg);
          global != globals.end() && (assigned || mayChange(program, *fact, i)))
        written.globals.insert(global->second);
    }
  if (moves)
    written.add(waysToMoved(types, expression));
  return written;
}

} // namespace devicetidy
