// Runs generated functions, each in a child of its own.
#pragma once

namespace runner {
inline constexpr int worlds = 36;
inline int world = 0;
inline int flags = 0; // how often a flag was asked for in this world

struct Function {
  const char *name;
  void (*call)();
  int worlds; // 1: it uses nothing that differs between worlds
  bool apart; // it keeps something from call to call, so each world needs a process
};
} // namespace runner

extern const runner::Function functions[]; // ends with a null name
extern const char *const generatedFile;
