//===- CallStack.h - frames of the program ----------------------*- C++ -*-===//
//
// Where in the program something happens: the frames of the calling thread that may be project code.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Export.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace vcuda {

/// Addresses inside the calls, innermost first. Trivial, so that it can live in thread-local storage and be
/// taken in a signal handler.
struct CallStack {
  static constexpr size_t kMostFrames = 32;

  size_t count;
  std::array<uintptr_t, kMostFrames> frames;

  /// Leaves out LibTorch, the language runtime and this library.
  static CallStack ofCaller();
};

/// An interpreter whose functions are the program, such as Python: they are no addresses, so each place in
/// them gets a number.
struct Interpreter {
  /// Writes the places that the calling thread is in, innermost first, and says how many.
  size_t (*places)(uint32_t *numbers, size_t most);
  /// "/home/me/train.py:12 step"
  std::string (*text)(uint32_t number);
};

/// From here on call stacks end with the interpreter's places, and its own code is not part of them.
VCUDA_EXPORT void setInterpreter(const Interpreter &interpreter);

/// The unwinder and the module table allocate when they are used for the first time.
void prepareCallStacks();

/// "/home/me/build/train+0x1a2b7": the module and the offset in it, as addr2line takes them; an interpreter's
/// place is "/home/me/train.py:12 step".
std::string frameText(uintptr_t address);

/// Where a stack is in the program's own functions, for people: with the function's name where the symbol
/// table has it, and without the functions of LibTorch's headers. "" for an empty stack.
std::string readablePlace(const CallStack &stack);

} // namespace vcuda
