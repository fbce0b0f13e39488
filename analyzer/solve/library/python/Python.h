//===- Python.h - values of Python programs ---------------------*- C++ -*-===//
//
// A tensor, a number, a text, a device, None are the values they are in C++. A tuple is a list; a list is the
// address of one, a dictionary and an object are the address of a record. What a fact asks of a value is
// decided by what the value is; what LibTorch does is asked of its models, under the name it has in C++.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/engine/Library.h"

#include <string>
#include <vector>

namespace devicetidy::python {

/// The arguments of a call as Python sorts them.
struct Given {
  std::vector<Argument> positional;
  std::vector<std::pair<Name, Argument>> named;
  bool isOpen = false; ///< what is spread with * or ** is not known
  Value rest;          ///< what is spread with * and not known, which stands behind the positional ones
  std::vector<Argument> behindRest; ///< those without a name behind that
  Value namedRest;                  ///< what is spread with ** and not known

  /// Argument `name`, or the one in position `i`; null when it is not given.
  const Argument *find(std::string_view name, std::size_t i = ~std::size_t(0)) const;
};
/// `answer`, or where it is not known what stands for it: the same until the call may give another one.
Value answered(const Call &call, const Value &answer);
/// The same for a call of which nothing is known.
Value unknownResult(const Call &call, Row &row);
/// Does a device have the name in `text`, as in `"cuda" in device`?
Value namesDevice(const Call &call, const Value &device, const Value &text);
/// The arguments from operand `from` on.
Given givenTo(Call &call, std::size_t from);

/// What stands for an argument that is not given.
Value missing();
bool isMissing(const Value &value);
/// What a heap address leads to; the value itself otherwise.
Value behind(const Call &call, const Value &value);
/// The text of a constant string.
std::optional<std::string> textOf(const Call &call, const Value &value);
/// `text` with numbers and texts in the place of `marks`, which begin alike; unknown where there is more to
/// it.
Value withValues(const Call &call, const Row &row, const std::string &text,
                 const std::vector<std::string_view> &marks, const std::vector<Value> &values);
/// A device where `value` is one, or names one; `value` otherwise.
Value asDevice(const Call &call, const Value &value);
/// The same of what cuda() is given: a number that is not known tells a GPU, too.
Value asGpu(const Call &call, const Value &value);

inline const Name dictType("python::dict"), sliceType("python::slice"), parameterType("python::Parameter"),
    boundType("python::bound"), parameterListType("torch::nn::ParameterListImpl");
inline const Name loaderType("python::DataLoader"), parserType("python::ArgumentParser"),
    varsType("python::vars"), hookType("python::RemovableHandle"), generatorType("python::Generator");
constexpr const char *arrayType = "numpy.Array";            ///< numpy.py models it
constexpr std::string_view classPrefix = "python::class::"; ///< before the name of a class, as a value
constexpr const char *classForward =
    "@forward"; ///< forward() of the class, whatever the object has in its place
constexpr const char *bufferMark = "@buffer:"; ///< before the name of a buffer, in the module that has it

/// The address of a fresh list, dictionary or object that holds `value`.
Value allocated(Call &call, Row &row, Name type, const Value &value);
Value listOf(Call &call, Row &row, std::vector<Value> elements);

/// Calls `name` of LibTorch, as C++ would. `type` is what the function returns there.
Outcomes callTorch(Call &call, Row row, const std::string &name, const std::vector<Argument> &args,
                   bool hasObject, Name type = "at::Tensor");
/// What operator `name` of LibTorch returns. `args` start with the tensor; max, min and median of a dimension
/// return a pair.
Name resultTypeOf(std::string_view name, const std::vector<Argument> &args, bool hasDim);
/// Calls what was found in an object under a name that is not known: each of its methods that take the
/// arguments.
std::optional<Outcomes> callAnyMethod(Call &call, const Row &row, const Value &part, const Given &given);
/// Calls a value: a function, a class, a bound method, a module.
Outcomes callValue(Call &call, Row row, const Value &callee, const Given &given, const Argument &written);
/// Runs a module with the hooks that it and its layers have.
Outcomes callModule(Call &call, Row row, const Argument &module, const Given &given);
/// A module of which nothing is known gives tensors where it gets them.
Outcomes callUnknownModule(Call &call, Row row, const Given &given);
/// Registers the first argument as a hook; gives what removes it.
Outcomes addHook(Call &call, Row row, const Address &module, bool isBefore, const Given &given);
void removeHook(Call &call, Row &row, const Value &hook);
/// Calls a function of the program with its arguments bound by name.
Outcomes callFunction(Call &call, Row row, const Function &function, const Value &callable, Address self,
                      const Given &given);
/// An attribute of a class; null where its body and those of the classes behind it do not assign it.
Value attributeOfClass(Machine &machine, const Row &row, Name type, Name attribute);
/// Class.attribute = value.
void assignToClass(Machine &machine, Row &row, Name type, Name attribute, const Value &value);
/// What was assigned so; null where nothing was.
Value assignedAttribute(Machine &machine, const Row &row, Name type, Name attribute);
/// Has the object the attribute from its class, and none of its own?
bool isOfClass(Machine &machine, const Row &row, const Value &object, Name attribute);
/// What Class.attribute is now: what was assigned, or what its body has assigned; null for neither.
Value attributeNow(Machine &machine, Row &row, Name type, Name attribute);
/// The attribute of an object of `type` that a caller passes, where its constructor makes a tensor on the
/// CPU, whatever it is given, and nothing puts another in its place; null otherwise.
Value keptOnCpu(Machine &machine, const Row &row, Name type, Name attribute);
/// The module that a constructor puts under `name`, of a module that a caller passes; null for what is none.
Value partOfGiven(Machine &machine, const Row &row, const Value &object, const std::string &name);
/// A new object of the class `made` of the program: attributes of the class, then __init__.
Outcomes constructObject(Call &call, Row row, const Value &made, const Given &given);
/// A module of torch.nn by the name of its class.
Outcomes constructModule(Call &call, Row row, const std::string &name, const Given &given);
/// The module of the library that `type` is, or derives from; none for others.
Name libraryModule(const Machine &machine, Name type);
/// Puts a parameter or a module into a container of them, under `field`, an entry of a dictionary.
void registerEntry(Call &call, Row &row, const Address &module, Name field, const Value &entry);
/// Makes the object at `self` what the constructor of `base`, a module of the library, makes.
Outcomes constructBase(Call &call, Row row, const Address &self, Name base, const Given &given);
/// Adds what stands for the elements of a list of unknown length to the modules of `container`.
void appendSome(Call &call, Row &row, const Address &container, const Value &list);
/// The arguments as C++ takes them: keywords behind the positional ones, devices for what names them.
/// `namesDevices`: texts are devices, too.
std::vector<Argument> inOrder(const Call &call, const Given &given, bool namesDevices);
/// Calls what a library has under a dotted name.
Outcomes callLibrary(Call &call, Row row, const std::string &dotted, const Given &given);
/// Has a tensor a method of that name, which gives a tensor, and a module none?
bool isMethodOfTensors(const Machine &machine, const std::string &name);
/// Notes x.to(device) of a tensor whose result nobody takes.
void noteDiscarded(Call &call, const Argument &object, const std::string &name);
/// Calls method `name` of a tensor; of a module of class `type`.
Outcomes callTensorMethod(Call &call, Row row, const Argument &object, std::string name, const Given &given);
Outcomes callModuleMethod(Call &call, Row row, const Argument &object, Name type, const std::string &name,
                          const Given &given);
/// Is `object` one that a caller has passed, and is method `name` another in a class behind the one it is
/// Does a class, or one behind it, set this attribute of its objects?
bool setsAttribute(const Types &types, Name type, Name attribute);
/// said to be of?
bool isOfSeveralClasses(const Machine &machine, const Value &object, const std::string &name);
/// Calls method `name` of `object`.
Outcomes callMethod(Call &call, Row row, const Argument &object, const std::string &name, const Given &given);
/// What is drawn with the generator that is `given`, if any, must be on its device.
void meetGenerator(Call &call, Outcomes &outcomes, const Given &given, const std::string &name);
/// Calls a method that Python asks an object of the program for (`__add__`); nothing when it has none.
std::optional<Outcomes> callSpecial(Call &call, const Argument &object, const std::string &name,
                                    const std::vector<Argument> &args);
/// Methods of lists, dictionaries and texts; nothing when `object` has no such method.
std::optional<Outcomes> callContainerMethod(Call &call, Row &row, const Argument &object,
                                            const std::string &name, const Given &given);
/// Methods of a text that is known; nothing where they give what is not.
std::optional<Outcomes> callTextMethod(Call &call, Row &row, const std::string &text, const std::string &name,
                                       const Given &given);
/// The attribute `name` of `object`.
Outcomes attributeOf(Call &call, Row row, const Argument &object, const std::string &name);
/// Sets the attribute `name` of `object`; of a module it may register it.
Outcomes setAttribute(Call &call, Row row, const Argument &object, const std::string &name,
                      const Argument &value);
/// The same whatever __setattr__ its class has.
Outcomes setOwnAttribute(Call &call, Row row, const Argument &object, const std::string &name,
                         const Argument &value);
/// The device that the program has made the default one; nothing where it has not.
std::optional<Value> defaultDeviceOf(const Call &call, const Row &row);
/// The arguments of what makes tensors: where they name no device, with the default one.
Given withDefaultDevice(const Call &call, const Row &row, const Given &given);
/// Calls a function of torch about devices; nothing when `dotted` is none.
std::optional<Outcomes> callDeviceFunction(Call &call, Row &row, const std::string &dotted,
                                           const Given &given);
/// isinstance, hasattr, getattr, setattr, vars; nothing for other names.
std::optional<Outcomes> reflected(Call &call, Row &row, const std::string &name, const Given &given);
/// Does the object itself have the attribute, and not its class?
Value hasOwnAttribute(const Call &call, const Value &object, const std::string &name);
/// What `vars`, the attributes of an object, holds, as a dictionary.
Value attributesOf(const Call &call, const Value &vars);
/// vars.update(..)
Outcomes setAttributes(Call &call, const Row &row, const Value &vars, const Given &given);
/// What a loop over `value` goes through, as the address of a list.
Value iterable(Call &call, Row &row, const Value &value);

/// An environment variable; `otherwise` is what it is without one, and may be null.
Outcomes readVariable(Call &call, Row &row, const Argument &name, const Argument *otherwise);
/// Is there such a variable?
Value hasVariable(const Call &call, const Value &name);
/// Puts a variable into the environment of the program and of what it starts; a name that is not known may be
/// any.
void writeVariable(Call &call, const Value &name, const Value &value);
inline const Name environmentType("os.environ"); ///< the function that stands for the environment
/// The program is one of several ranks.
void launch(Row &row);
/// Does the row know that it is?
bool hasRanks(const Row &row);

/// What models of libraries ask for as `dt.name(..)`; nothing when there is no such function.
std::optional<Outcomes> callPrimitive(Call &call, Row &row, const std::string &name, const Given &given);

/// What a loader makes of an item: numbers become tensors of the CPU, the rest stays as it is.
Value batched(Call &call, Row &row, const Value &item);
/// What the user gives for an option of the command line: decided outside; a device where its name says so.
Value optionOf(const std::string &name);
/// The same of a choice that `origin` stands for.
Value optionOf(const std::string &name, Term origin);
/// `__get__`, `__set__` or `__set_name__` of an attribute of a class that is an object of the program.
const Function *methodOfDescriptor(const Machine &machine, const Row &row, const Value &value,
                                   const std::string &name);
/// setattr, or `object[name] = given`, under a name that is not known: what somebody outside gives may be for
/// any attribute or entry, and for those of any part of the object.
void setAnyPart(const Call &call, Row &row, const Value &object, const Value &name, const Value &given);
/// The numbers, texts and devices of an object, and what it has not been given, become what the user says; so
/// do those of objects in it, `nesting` deep.
void chooseAttributes(Machine &machine, Row &row, const Address &object, int nesting);

Outcomes done(const Row &row, Value value);

} // namespace devicetidy::python
