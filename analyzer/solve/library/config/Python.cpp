//===- Python.cpp - embedded Python: pybind11 and the C interface -----===//
//
// A Python object is a record: "@path" is the dotted path it was reached by, "@base" the object whose
// attribute it is. Dictionaries, keyword arguments and `"key"_a = value` are records of "[key]" fields.
//
//===----------------------------------------------------------------------===//
#include "analyzer/solve/domain/NameParts.h"
#include "analyzer/solve/library/config/Config.h"

#include <algorithm>

namespace devicetidy {
namespace {

const Name pathField("@path"), baseField("@base"), itemField("@item"), nameField("@name");
const Name objectType("pybind11::object");

std::string pathOf(const Value &object) {
  auto path = object->fields.find(pathField);
  std::optional<Name> text;
  if (path != object->fields.end() && is(path->second, ValueKind::Scalar))
    text = textOf(path->second->term);
  return text ? text->str() : "?";
}

Value pathValue(const std::string &path) {
  return recordValue(objectType, {{pathField, scalarValue(textTerm(Name(path)))}});
}

// What an accessor stands for: the entry or attribute it names, when that was set.
Value looked(const Call &call, const Value &object) {
  auto item = object->fields.find(itemField);
  if (!is(object, ValueKind::Record) || item == object->fields.end())
    return object;
  Value held = call.machine.memory.read(call.row, item->second->address);
  return is(held, ValueKind::Unknown) ? object : held;
}

// obj.attr("name") and obj["key"]: a record that remembers where an assignment goes.
Outcomes access(Call &call, const Value &object, const Address &where, bool isAttribute,
                const std::string &key) {
  std::map<Name, Value> fields;
  if (isAttribute)
    fields[pathField] = scalarValue(textTerm(Name(pathOf(looked(call, object)) + "." + key)));
  if (where.valid()) {
    fields[baseField] = addressValue(where);
    fields[itemField] = addressValue(where.field(entryField(key)));
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

// dict.attr("update")(...), attr("pop")("key"), attr("setdefault")("key", value)
std::optional<Outcomes> dictionaryMethod(Call &call, const std::string &path) {
  auto base = call.object()->fields.find(baseField);
  const std::string_view method = std::string_view(path).substr(path.rfind('.') + 1);
  if (base == call.object()->fields.end() ||
      !isOneOf(method, {"update", "pop", "setdefault", "__setitem__", "clear"}))
    return std::nullopt;
  const Address where = base->second->address;
  Value dictionary = call.machine.memory.read(call.row, where);
  if (!is(dictionary, ValueKind::Record))
    dictionary = recordValue(objectType);
  std::optional<std::string> key = call.argCount() ? textArgument(call, 0) : std::nullopt;
  if (method == "update")
    for (std::size_t i = 0; i < call.argCount(); ++i)
      dictionary = mergedEntries(dictionary, call.arg(i));
  else if (method == "clear")
    dictionary = recordValue(objectType);
  else if (method == "pop" && key)
    dictionary = withoutField(dictionary, entryField(*key));
  else if (key && call.argCount() > 1 &&
           (method != "setdefault" || !dictionary->fields.count(entryField(*key))))
    dictionary = withField(dictionary, entryField(*key), call.arg(1));
  call.machine.memory.write(call.row, where, dictionary);
  return call.done(unknownValue());
}

std::optional<Outcomes> objectMethod(Call &call, std::string_view method) {
  Value object = call.object();
  if (method == "attr" || method == "operator[]") {
    std::optional<std::string> key = textArgument(call, 0);
    return key ? access(call, object, call.objectAddress(), method == "attr", *key)
               : call.done(unknownValue());
  }
  if (method == "operator*") // *args, and **kwargs in two steps
    return call.done(looked(call, object));
  if (method == "operator()") {
    if (std::optional<Outcomes> outcomes = dictionaryMethod(call, pathOf(object)))
      return outcomes;
    return call.done(unknownValue());
  }
  if (method == "contains" && is(object, ValueKind::Record) && !object->origin)
    if (std::optional<std::string> key = textArgument(call, 0))
      return call.done(scalarValue(intTerm(object->fields.count(entryField(*key)) != 0)));
  if (method == "clear") {
    call.machine.memory.write(call.row, call.objectAddress(), recordValue(objectType));
    return call.done(unknownValue());
  }
  if (startsWith(method, "operator ") || method == "cast")
    return call.done(looked(call, object));
  return std::nullopt;
}

std::optional<Outcomes> modelPybind(Call &call, std::string_view name) {
  const std::string_view method = lastPart(name);
  if (name == "pybind11::module_::import" || name == "pybind11::module::import") {
    std::optional<std::string> module = textArgument(call, 0);
    return call.done(module ? pathValue(*module) : unknownValue());
  }
  if (method == "operator\"\"_a")
    return call.done(recordValue("pybind11::arg", {{nameField, call.arg(0)}}));
  if (name == "pybind11::arg::operator=" && is(call.object(), ValueKind::Record)) {
    auto key = call.object()->fields.find(nameField);
    std::optional<Name> text;
    if (key != call.object()->fields.end() && is(key->second, ValueKind::Scalar))
      text = textOf(key->second->term);
    return call.done(
        text ? recordValue("pybind11::arg_v", {{entryField(text->view()), looked(call, call.arg(0))}})
             : unknownValue());
  }
  if (name == "pybind11::cast" || name == "pybind11::reinterpret_borrow" ||
      name == "pybind11::reinterpret_steal")
    return call.done(call.argCount() ? call.arg(0) : unknownValue());
  if (name == "pybind11::detail::accessor::operator=") {
    auto item = call.object()->fields.find(itemField);
    if (item != call.object()->fields.end())
      call.machine.memory.write(call.row, item->second->address, looked(call, call.arg(0)));
    return call.done(unknownValue());
  }
  if (name == "pybind11::setattr" && call.argCount() == 3) {
    if (std::optional<std::string> key = textArgument(call, 1); key && call.addressOf(0).valid())
      call.machine.memory.write(call.row, call.addressOf(0).field(entryField(*key)), call.arg(2));
    return call.done(unknownValue());
  }
  return call.fact.hasObject ? objectMethod(call, method) : std::nullopt;
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

std::optional<Outcomes> modelInterface(Call &call, std::string_view name) {
  Machine &machine = call.machine;
  if (name == "PyDict_New") {
    const Address made = machine.allocate(call.row, call.frame, call.fact, "PyObject");
    machine.memory.write(call.row, made, recordValue("PyObject"));
    return call.done(addressValue(made));
  }
  if (name == "PyUnicode_FromString" || name == "PyLong_FromLong")
    return call.done(call.arg(0));
  if (name == "Py_BuildValue")
    return call.done(builtValue(call));
  if (name == "PyDict_SetItemString" || name == "PyDict_DelItemString" || name == "PyObject_SetAttrString") {
    Value object = call.operand(0);
    std::optional<std::string> key = textArgument(call, 1);
    if (key && is(object, ValueKind::Address)) {
      Value dictionary = machine.memory.read(call.row, object->address);
      if (call.argCount() > 2)
        machine.memory.write(call.row, object->address.field(entryField(*key)), call.arg(2));
      else if (is(dictionary, ValueKind::Record))
        machine.memory.write(call.row, object->address, withoutField(dictionary, entryField(*key)));
    }
    return call.done(machine.unknownResult(call));
  }
  if (name == "PyImport_ImportModule" || name == "PyObject_GetAttrString") {
    std::optional<std::string> text = textArgument(call, name == "PyImport_ImportModule" ? 0 : 1);
    if (!text)
      return call.done(unknownValue());
    return call.done(
        pathValue(name == "PyImport_ImportModule" ? *text : pathOf(call.operand(0)) + "." + *text));
  }
  return std::nullopt;
}

} // namespace

std::string pythonCallee(const Call &call) {
  const std::string_view name = call.fact.name.view();
  if (name == "pybind11::detail::object_api::operator()")
    return pathOf(call.object());
  if (startsWith(name, "PyObject_CallMethod")) {
    std::optional<std::string> method = textArgument(call, 1);
    return pathOf(call.operand(0)) + "." + (method ? *method : "?");
  }
  return startsWith(name, "PyObject_Call") || startsWith(name, "PyObject_Vectorcall")
             ? pathOf(call.operand(0))
             : std::string();
}

std::optional<Outcomes> modelPython(Call &call) {
  const std::string_view name = call.fact.name.view();
  if (startsWith(name, "pybind11::"))
    return modelPybind(call, name);
  return startsWith(name, "Py") ? modelInterface(call, name) : std::nullopt;
}

std::optional<Value> constructPython(Call &call, Name type, const std::vector<Value> &args) {
  const std::string_view name = type.view();
  if (!startsWith(name, "pybind11::"))
    return std::nullopt;
  if (name == "pybind11::arg" && !args.empty())
    return recordValue(type, {{nameField, args[0]}});
  if (name == "pybind11::none")
    return nullValue();
  if (name == "pybind11::dict" || name == "pybind11::kwargs") {
    Value dictionary = recordValue(type);
    for (const Value &arg : args)
      dictionary = mergedEntries(dictionary, arg);
    return dictionary;
  }
  if (args.size() == 1)
    return looked(call, args[0]);
  return std::nullopt;
}

} // namespace devicetidy
