// What the generated functions of differential.py are written with, and the driver that runs them.
//
// With DT_RUN undefined, as the analyzer reads it, nothing here has a body and AT is nothing: choices are
// unknown to it, and the line marks do not get between the statements.
//
//   ./program --all         runs every function under every value of its choices, one line of text per run
//   ./program 3             runs function number 3 with all choices 0 (see cases.h)
#pragma once

#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace differential {

struct Pack {
  torch::Tensor first;
  torch::Tensor second;
};

// A function asks for each of its choices in one place, so that no two answers depend on each other.
bool flag(int choice);
int count(int choice);

} // namespace differential

#ifdef DT_RUN

#include "../cases/cases.h"

#include <set>

#include <sys/wait.h>
#include <unistd.h>

namespace differential {

constexpr int Choices = 3;
inline thread_local int currentLine = 0;
inline thread_local int choiceBits = 0;
inline thread_local int visits[Choices] = {};
inline thread_local std::set<int> reachedLines;

inline void reach(int line) {
  currentLine = line;
  reachedLines.insert(line);
}

// In a helper or lambda: the caller's line is current again afterwards, unless an exception passes through.
struct Frame {
  int saved = currentLine;
  int exceptions = std::uncaught_exceptions();
  ~Frame() {
    if (std::uncaught_exceptions() == exceptions)
      currentLine = saved;
  }
};

// Two bits per choice: its first value, and whether it changes with every visit (a choice in a loop has
// several).
inline bool flag(int choice) {
  const int bits = choiceBits >> 2 * choice;
  return (bits ^ (bits >> 1 & visits[choice]++)) & 1;
}
inline int count(int choice) { return flag(choice) ? 2 : 0; }

// One line: name, choices, the line that threw or 0, the lines that were reached, what was thrown.
inline void report(const std::string &name, int bits, cases::Function function) {
  currentLine = 0;
  reachedLines.clear();
  choiceBits = bits;
  std::fill_n(visits, Choices, 0);
  int thrown = 0;
  std::string text = "-";
  try {
    torch::NoGradGuard noGrad;
    torch::manual_seed(1);
    function();
  } catch (const std::exception &error) {
    thrown = currentLine;
    text = error.what();
  }
  std::printf("RUN %s %d %d ", name.c_str(), bits, thrown);
  for (int line : reachedLines)
    std::printf("%d,", line);
  std::printf(" %s\n", text.substr(0, text.find('\n')).c_str());
  std::fflush(stdout);
}

// Each function in a process of its own: one that crashes takes only its own results with it.
inline int runAll(const char *list, const std::vector<cases::Function> &functions) {
  const std::vector<std::string> names = cases::splitNames(list);
  for (size_t i = 0; i < names.size(); ++i) {
    const pid_t child = fork();
    if (child == 0) {
      for (int bits = 0; bits < 1 << 2 * Choices; ++bits)
        report(names[i], bits, functions[i]);
      _exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
      std::printf("CRASH %s %d\n", names[i].c_str(), status);
    std::fflush(stdout);
  }
  return 0;
}

} // namespace differential

#define AT differential::reach(__LINE__);
#define FRAME differential::Frame frame;
#define DIFFERENTIAL_MAIN(...)                                                                               \
  int main(int argc, char **argv) {                                                                          \
    if (argc > 1 && std::string(argv[1]) == "--all")                                                         \
      return differential::runAll(#__VA_ARGS__, {__VA_ARGS__});                                              \
    return cases::run(#__VA_ARGS__, {__VA_ARGS__}, argc, argv);                                              \
  }

#else

#define AT
#define FRAME
#define DIFFERENTIAL_MAIN(...)                                                                               \
  int main() {                                                                                               \
    for (void (*function)() : {__VA_ARGS__})                                                                 \
      function();                                                                                            \
  }

#endif
