//===- Rows.h - what a library function does, in one line --------*- C++ -*-===//
//
// A row says of one function, by its exact qualified name, what a call of it does: a list of effects, of
// which the last one gives the result.
//
//   at::Tensor::is_cuda          is_cuda(self)
//   cv::cuda::add                requires_same(arg0, arg1); write(arg2, like(arg0))
//
// An effect is a word with arguments. `self` is the object of a method, `arg0` the first argument, `args` all
// of them; a bare word is a name (cpu), '...' is text. What words mean is up to who runs the row
// (analyzer/solve/engine/Library.h).
//
// Names of rows:
//   ns::Class::method     this function; `ns::Class::construct` for the constructors of a class
//   ns::f/2               only with two arguments
//   ns::Class::operator T its conversions to types that have no row
//   ns::Class::*          every other function of the class or namespace
//   cublas::*             the prefix of a C library is its namespace: cublasSgemm, and MPI::* is MPI_Send
//   dt::list::push_back   the method of any class of this kind (library_types.csv)
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace devicetidy::models {

struct Effect {
  enum class Kind : unsigned char { Call, Name, Text, Number };
  Kind kind = Kind::Name;
  std::string word; ///< of a call its name; of a text the text
  std::int64_t number = 0;
  std::vector<Effect> args;
  std::size_t offset = 0; ///< where it begins in the text of the row

  /// The word of argument `i`; empty when there is none.
  std::string_view detail(std::size_t i = 0) const {
    return i < args.size() ? std::string_view(args[i].word) : std::string_view();
  }
  /// Is `wanted` among the arguments?
  bool says(std::string_view wanted) const {
    for (const Effect &arg : args)
      if (arg.word == wanted)
        return true;
    return false;
  }
};

struct Row {
  std::string name;
  int arity = -1; ///< the number of arguments it is for; -1: any
  std::vector<Effect> effects;
};

/// A row that cannot be read. Says what is wrong, and where in the effects.
class RowError : public std::runtime_error {
public:
  RowError(const std::string &message, std::size_t offset) : std::runtime_error(message), offset(offset) {}
  std::size_t offset;
};

/// The name of a row, and the number of arguments that it may have behind it; -1 where it has none. Throws
/// RowError.
std::pair<std::string_view, int> splitRowName(std::string_view name);

/// Reads a row. Throws RowError.
Row parseRow(std::string_view name, std::string_view effects);

} // namespace devicetidy::models
