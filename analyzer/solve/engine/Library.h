//===- Library.h - what the words of models mean ----------------*- C++ -*-===//
//
// A library function is known by its exact qualified name: by a model body (analyzer/models/bodies), or by
// rows (analyzer/models/data/models_*.csv and the user's). A row is made of words; a word is
//
//   a handler    sees the whole call: what it is for cannot be said with values alone (conditions, gradients)
//   a primitive  gets values and gives one; bodies are written with the same words (dt.h)
//   a maker      gives the object that a constructor makes
//
// The rooms of analyzer/solve/library define the words; the engine looks them up and knows none by name.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/models/Rows.h"
#include "analyzer/solve/engine/Machine.h"

#include <initializer_list>

namespace devicetidy {

/// Answers `call`; `effect` is the word as the row has it, with its arguments. Nothing: the row does not know
/// this call, the next one is asked.
using Handler = std::optional<Outcomes> (*)(Call &call, const models::Effect &effect);
/// Gives a value for the arguments of `call`, which are all its operands.
using Primitive = Outcomes (*)(Call &call);
/// An object that a constructor makes: of `type`, at `where`, from `args`.
struct Making {
  Call &call;
  Name type;
  Address where;
  const std::vector<Argument> &args;

  /// The value of argument `i`; unknown when there is none.
  Value arg(std::size_t i) const { return i < args.size() ? args[i].value : unknownValue(); }
  Outcomes done(Value made) const { return call.done(std::move(made)); }
};
/// The object, one outcome per way through its constructor; none when it does not return. Nothing when what
/// is made of these arguments is not known. The engine puts the object where it belongs.
using Maker = std::optional<Outcomes> (*)(const Making &making, const models::Effect &effect);

/// The words that one file of the library defines.
struct Words {
  std::vector<std::pair<std::string_view, Handler>> handlers;
  std::vector<std::pair<std::string_view, Primitive>> primitives;
  std::vector<std::pair<std::string_view, Maker>> makers;
};

/// What rooms of the library do at points of the interpretation that are no calls of their functions.
struct Hooks {
  /// A value of the program is called: a closure, a function object, a pointer to a function.
  Outcomes (*callValue)(Call &call, Row row, const Value &callable, const std::vector<Argument> &args,
                        const Address &where) = nullptr;
  /// A library function is about to be called, or an object of a library class about to be made.
  void (*beforeCall)(Call &call) = nullptr;
  /// A library function or constructor has left `row`.
  void (*afterCall)(Machine &machine, Frame &frame, const Fact &fact, Row &row) = nullptr;
  /// What is left of `value`, an object of `type`, after a move has taken it.
  Value (*movedFrom)(const Machine &machine, Name type, const Value &value) = nullptr;
  /// How many elements an iterator stands behind the first one; nothing when that is not known.
  std::optional<std::int64_t> (*ordinalOf)(const Machine &machine, const Row &row,
                                           const Value &iterator) = nullptr;
  /// The test and the step of a range-based for.
  Outcomes (*rangeCall)(Call &call) = nullptr;
  /// A batch taken from a loader, with this place in its tensors' histories.
  Value (*takenBatch)(Call &call, const Value &batch) = nullptr;
  /// Everything that is registered in the module at `where` moves to `placement`.
  void (*moveModule)(Machine &machine, Row &row, const Address &where, const Placement &placement,
                     const History &history) = nullptr;
  /// Puts the layers of the module at `where` onto the devices of a map; false where its class does not say
  /// that it may be loaded so.
  bool (*spreadModule)(Machine &machine, Row &row, const Address &where) = nullptr;
  /// A kernel is launched.
  void (*launch)(Call &call) = nullptr;
  /// A function of the program is called whose code is not known.
  void (*callUnseen)(Call &call) = nullptr;
  /// The host reads or writes through a pointer into a tensor's memory, the first operand.
  void (*accessMemory)(Call &call) = nullptr;
  /// A function without a model may write to operand `i`.
  void (*forgetOperand)(Call &call, std::size_t i) = nullptr;
  /// Tensors have been used together, and may be.
  void (*useTensors)(Machine &machine, Row &row, const std::vector<TensorUse> &uses) = nullptr;
};

class Library {
public:
  /// Throws std::logic_error when a word is defined twice.
  Library(const Hooks &hooks, std::initializer_list<Words> words);

  const Handler *handler(std::string_view word) const { return find(handlers, word); }
  /// `word` without `dt::`.
  const Primitive *primitive(std::string_view word) const { return find(primitives, word); }
  const Maker *maker(std::string_view word) const { return find(makers, word); }
  bool knows(std::string_view word) const { return handler(word) || primitive(word) || maker(word); }
  /// All words, sorted.
  std::vector<std::string_view> words() const;

  const Hooks hooks;

private:
  template <typename Word> using Table = std::unordered_map<std::string_view, Word>;
  template <typename Word> static const Word *find(const Table<Word> &table, std::string_view word) {
    const auto found = table.find(word);
    return found == table.end() ? nullptr : &found->second;
  }

  Table<Handler> handlers;
  Table<Primitive> primitives;
  Table<Maker> makers;
};

/// The names under which `function` is modelled, the most exact first: its own name, its name as a method of
/// the object's class, its name as a method of that kind of class, and `*` for every other function of its
/// class, kind or namespace. `object` is the type of the object, empty when there is none.
std::vector<ModelName> modelNames(const Types &types, Name function, Name object);
/// The same for the constructors of `type`.
std::vector<ModelName> constructorNames(const Types &types, Name type);
/// The same for `function` on values that are known by what they are, whatever their class, by kind: on an
/// iterator it is `dt::iterator::function`.
std::map<Name, std::vector<ModelName>> kindNames(Name function);

/// Does `word` stand for a value where it has no arguments: self, arg0, cpu, null?
bool isValueWord(std::string_view word);
/// Runs the primitive that a fact of a model body names.
Outcomes runPrimitive(Call &call);
/// What the body or rows of the called function say of `call`; nothing when it has no model, or none for
/// these arguments.
std::optional<Outcomes> answer(Call &call);
/// The object that the body or rows of its class say is made; of the base part of an object (`isBase`) the
/// rows.
std::optional<Outcomes> makeObject(const Making &making, bool isBase = false);
/// The effect `word` in the rows of the function that `fact` calls; null when they have none.
const models::Effect *effectOf(Machine &machine, const Fact &fact, std::string_view word);

} // namespace devicetidy
