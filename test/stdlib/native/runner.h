// Runs generated functions, each in each world in a child of its own.
#pragma once

namespace runner {
inline constexpr int worlds = 6;
inline int world = 0;

struct Function {
  const char *name;
  void (*call)();
  bool everyWorld; // false: it uses nothing that differs between worlds
};
} // namespace runner

extern const runner::Function functions[]; // ends with a null name
extern const char *const generatedFile;
