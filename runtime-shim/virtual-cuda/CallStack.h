// Where in the program something happens: the frames of the calling thread that may be project code.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace vcuda {

// Addresses inside the calls, innermost first. Trivial, so that it can live in thread-local storage and be
// taken in a signal handler.
struct CallStack {
  static constexpr size_t kMostFrames = 32;

  size_t count;
  std::array<uintptr_t, kMostFrames> frames;

  // Leaves out LibTorch, the language runtime and this library.
  static CallStack ofCaller();
};

// The unwinder and the module table allocate when they are used for the first time.
void prepareCallStacks();

// "/home/me/build/train+0x1a2b7": the module and the offset in it, as addr2line takes them.
std::string frameText(uintptr_t address);

// The same for people: the function's name is added where the symbol table has it.
std::string readableFrame(uintptr_t address);

} // namespace vcuda
