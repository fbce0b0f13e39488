//===- Python.cpp - embedded Python: pybind11 and the C interface -----===//
//
// A Python object is a record: `path` is the dotted path it was reached by, `base` the object whose
// attribute it is. Dictionaries, keyword arguments and `"key"_a = value` are records of "[key]" fields.
//
//===----------------------------------------------------------------------===//
#include "analyzer/solve/library/config/Config.h"

#include "analyzer/models/Models.h"
#include "analyzer/solve/domain/HiddenFields.h"
#include "analyzer/solve/library/config/Words.h"

namespace devicetidy {
namespace {

using models::Effect;

const Name objectType("pybind11::object");

std::string pathOf(const Value &object) {
  auto path = object->fields.find(hidden::path);
  std::optional<Name> text;
  if (path != object->fields.end() && is(path->second, ValueKind::Scalar))
    text = textOf(path->second->term);
  return text ? text->str() : "?";
}

Value pathValue(const std::string &path) {
  return recordValue(objectType, {{hidden::path, scalarValue(textTerm(Name(path)))}});
}

// What an accessor stands for: the entry or attribute it names, when that was set.
Value looked(const Call &call, const Value &object) {
  auto item = object->fields.find(hidden::item);
  if (!is(object, ValueKind::Record) || item == object->fields.end())
    return object;
  Value held = call.machine.memory.read(call.row, item->second->address);
  return is(held, ValueKind::Unknown) ? object : held;
}

// obj.attr("name") and obj["key"]: a record that remembers where an assignment goes.
std::optional<Outcomes> access(Call &call, const Effect &effect) {
  const std::optional<std::string> key = textArgument(call, 0);
  const Address where = call.objectAddress();
  if (!key)
    return call.done(unknownValue());
  std::map<Name, Value> fields;
  if (effect.says("attribute"))
    fields[hidden::path] = scalarValue(textTerm(Name(pathOf(looked(call, call.object())) + "." + *key)));
  if (where.valid()) {
    fields[hidden::base] = addressValue(where);
    fields[hidden::item] = addressValue(where.field(entryField(*key)));
  }
  return call.done(recordValue(objectType, std::move(fields)));
}

Value mergedEntries(Value into, const Value &from) {
  if (is(from, ValueKind::Record))
    for (const auto &[name, field] : from->fields)
      if (isEntry(name.view()))
        into = withField(into, name, field);
  return into;
}

// A function of Python is called. Methods of dictionaries have rows of their own: dict.attr("update")(...).
std::optional<Outcomes> callPython(Call &call, const Effect &) {
  const Value callee = call.object();
  const std::string path = pathOf(callee);
  if (callee->fields.count(hidden::base))
    for (const models::Row &row : models::rows("python::dict::" + path.substr(path.rfind('.') + 1)))
      if (const Handler *handler = call.machine.library.handler(row.effects[0].word))
        return (*handler)(call, row.effects[0]);
  return call.done(unknownValue());
}

// The dictionary whose method is called becomes what `change` makes of it.
Outcomes changeDictionary(Call &call, Value (*change)(const Call &call, const Value &dictionary)) {
  const Address where = call.object()->fields.at(hidden::base)->address;
  const Value dictionary = call.machine.memory.read(call.row, where);
  call.machine.memory.write(
      call.row, where,
      change(call, is(dictionary, ValueKind::Record) ? dictionary : recordValue(objectType)));
  return call.done(unknownValue());
}

std::optional<Outcomes> updateDictionary(Call &call, const Effect &) {
  return changeDictionary(call, [](const Call &of, const Value &dictionary) {
    Value merged = dictionary;
    for (std::size_t i = 0; i < of.argCount(); ++i)
      merged = mergedEntries(merged, of.arg(i));
    return merged;
  });
}

std::optional<Outcomes> clearDictionary(Call &call, const Effect &) {
  return changeDictionary(call, [](const Call &, const Value &) { return recordValue(objectType); });
}

std::optional<Outcomes> popFromDictionary(Call &call, const Effect &) {
  return changeDictionary(call, [](const Call &of, const Value &dictionary) {
    const std::optional<std::string> key = textArgument(of, 0);
    return key ? withoutField(dictionary, entryField(*key)) : dictionary;
  });
}

Value withEntry(const Call &call, const Value &dictionary) {
  const std::optional<std::string> key = call.argCount() > 1 ? textArgument(call, 0) : std::nullopt;
  return key ? withField(dictionary, entryField(*key), call.arg(1)) : dictionary;
}

std::optional<Outcomes> setInDictionary(Call &call, const Effect &) {
  return changeDictionary(call, withEntry);
}

std::optional<Outcomes> setDefaultInDictionary(Call &call, const Effect &) {
  return changeDictionary(call, [](const Call &of, const Value &dictionary) {
    const std::optional<std::string> key = textArgument(of, 0);
    return key && dictionary->fields.count(entryField(*key)) ? dictionary : withEntry(of, dictionary);
  });
}

// Conversions and casts, and *args, and **kwargs in two steps.
std::optional<Outcomes> lookUp(Call &call, const Effect &) { return call.done(looked(call, call.object())); }

std::optional<Outcomes> contains(Call &call, const Effect &) {
  const Value object = call.object();
  const std::optional<std::string> key = textArgument(call, 0);
  if (!key || !is(object, ValueKind::Record) || object->origin)
    return std::nullopt;
  return call.done(scalarValue(intTerm(object->fields.count(entryField(*key)) != 0)));
}

std::optional<Outcomes> clear(Call &call, const Effect &) {
  call.machine.memory.write(call.row, call.objectAddress(), recordValue(objectType));
  return call.done(unknownValue());
}

std::optional<Outcomes> importModule(Call &call, const Effect &) {
  const std::optional<std::string> module = textArgument(call, 0);
  return call.done(module ? pathValue(*module) : unknownValue());
}

// "key"_a, and then what is assigned to it.
std::optional<Outcomes> namedArgument(Call &call, const Effect &) {
  return call.done(recordValue("pybind11::arg", {{hidden::name, call.arg(0)}}));
}

std::optional<Outcomes> keywordArgument(Call &call, const Effect &) {
  const Value argument = call.object();
  if (!is(argument, ValueKind::Record))
    return std::nullopt;
  const auto key = argument->fields.find(hidden::name);
  const std::optional<Name> text = key != argument->fields.end() && is(key->second, ValueKind::Scalar)
                                       ? textOf(key->second->term)
                                       : std::nullopt;
  return call.done(
      text ? recordValue("pybind11::arg_v", {{entryField(text->view()), looked(call, call.arg(0))}})
           : unknownValue());
}

std::optional<Outcomes> assignAccessed(Call &call, const Effect &) {
  const Value accessor = call.object();
  if (const auto item = accessor->fields.find(hidden::item); item != accessor->fields.end())
    call.machine.memory.write(call.row, item->second->address, looked(call, call.arg(0)));
  return call.done(unknownValue());
}

std::optional<Outcomes> setAttribute(Call &call, const Effect &) {
  if (const std::optional<std::string> key = textArgument(call, 1); key && call.addressOf(0).valid())
    call.machine.memory.write(call.row, call.addressOf(0).field(entryField(*key)), call.arg(2));
  return call.done(unknownValue());
}

// Py_BuildValue("{s:s,s:i}", key, value, ...)
Value builtValue(const Call &call) {
  std::optional<std::string> format = textArgument(call, 0);
  if (!format || format->empty() || format->front() != '{')
    return call.argCount() == 2 ? call.arg(1) : unknownValue();
  std::map<Name, Value> fields;
  for (std::size_t i = 1; i + 1 < call.argCount(); i += 2)
    if (std::optional<std::string> key = textArgument(call, i))
      fields[entryField(*key)] = call.arg(i + 1);
  return recordValue("PyObject", std::move(fields));
}

std::optional<Outcomes> buildValue(Call &call, const Effect &) { return call.done(builtValue(call)); }

std::optional<Outcomes> newDictionary(Call &call, const Effect &) {
  const Address made = call.machine.allocate(call.row, call.frame, call.fact, "PyObject");
  call.machine.memory.write(call.row, made, recordValue("PyObject"));
  return call.done(addressValue(made));
}

// PyDict_SetItemString(object, key, value) and its like.
std::optional<Outcomes> setItem(Call &call, const Effect &) {
  const Value object = call.operand(0);
  const std::optional<std::string> key = textArgument(call, 1);
  if (key && is(object, ValueKind::Address))
    call.machine.memory.write(call.row, object->address.field(entryField(*key)), call.arg(2));
  return call.done(call.machine.unknownResult(call));
}

std::optional<Outcomes> deleteItem(Call &call, const Effect &) {
  const Value object = call.operand(0);
  const std::optional<std::string> key = textArgument(call, 1);
  const Value dictionary =
      is(object, ValueKind::Address) ? call.machine.memory.read(call.row, object->address) : unknownValue();
  if (key && is(dictionary, ValueKind::Record))
    call.machine.memory.write(call.row, object->address, withoutField(dictionary, entryField(*key)));
  return call.done(call.machine.unknownResult(call));
}

std::optional<Outcomes> getAttribute(Call &call, const Effect &) {
  const std::optional<std::string> name = textArgument(call, 1);
  return call.done(name ? pathValue(pathOf(call.operand(0)) + "." + *name) : unknownValue());
}

std::optional<Outcomes> makeArgument(const Making &making, const Effect &) {
  if (making.args.empty())
    return std::nullopt;
  return making.done(recordValue(making.type, {{hidden::name, making.arg(0)}}));
}

std::optional<Outcomes> makeDictionary(const Making &making, const Effect &) {
  Value dictionary = recordValue(making.type);
  for (const Argument &arg : making.args)
    dictionary = mergedEntries(dictionary, arg.value);
  return making.done(dictionary);
}

// Any other object, made of one value.
std::optional<Outcomes> makePython(const Making &making, const Effect &) {
  if (making.args.size() != 1)
    return std::nullopt;
  return making.done(looked(making.call, making.arg(0)));
}

} // namespace

std::string pythonCallee(const Call &call) {
  const std::string_view name = call.fact.name.view();
  if (models::hasRole(name, "calls_python"))
    return pathOf(call.operand(0));
  if (!models::hasRole(name, "calls_python_method"))
    return {};
  return pathOf(call.operand(0)) + "." + textArgument(call, 1).value_or("?");
}

Words pythonWords() {
  return {
      {{"python_access", access},
       {"call_python", callPython},
       {"update_dictionary", updateDictionary},
       {"clear_dictionary", clearDictionary},
       {"pop_from_dictionary", popFromDictionary},
       {"set_in_dictionary", setInDictionary},
       {"set_default_in_dictionary", setDefaultInDictionary},
       {"python_look_up", lookUp},
       {"python_contains", contains},
       {"python_clear", clear},
       {"python_import", importModule},
       {"named_argument", namedArgument},
       {"keyword_argument", keywordArgument},
       {"assign_accessed", assignAccessed},
       {"set_attribute", setAttribute},
       {"build_value", buildValue},
       {"new_dictionary", newDictionary},
       {"set_item", setItem},
       {"delete_item", deleteItem},
       {"get_attribute", getAttribute}},
      {},
      {{"make_argument", makeArgument}, {"make_dictionary", makeDictionary}, {"make_python", makePython}}};
}

} // namespace devicetidy
