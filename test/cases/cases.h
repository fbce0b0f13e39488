// The driver every case file ends with: DT_MAIN(caseA, caseB, ...) makes a program that runs one case.
//
//   ./program --list        prints the case names, one per line
//   ./program 3             runs case number 3 (from 0)
//   ./program name_of_case  runs it by name
//
// Ends with a line "ok" and exits 0, or with a line "THROWS: <first line of what()>" and exits 1.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

namespace cases {

using Function = void (*)();

inline std::vector<std::string> splitNames(const std::string &list) {
  std::vector<std::string> names(1);
  for (char c : list) {
    if (c == ',')
      names.emplace_back();
    else if (c != ' ' && c != '\n' && c != '\t')
      names.back() += c;
  }
  return names;
}

inline int runOne(Function function) {
  try {
    function();
  } catch (const std::exception &error) {
    const std::string text = error.what();
    std::fprintf(stderr, "%s\n", text.c_str());
    std::printf("\nTHROWS: %s\n", text.substr(0, text.find('\n')).c_str());
    return 1;
  }
  std::printf("\nok\n");
  return 0;
}

inline int run(const char *list, const std::vector<Function> &functions, int argc, char **argv) {
  const std::vector<std::string> names = splitNames(list);
  const std::string wanted = argc > 1 ? argv[1] : "--list";
  if (wanted == "--list") {
    for (const std::string &name : names)
      std::printf("%s\n", name.c_str());
    return 0;
  }
  for (size_t i = 0; i < names.size(); ++i)
    if (wanted == names[i] || wanted == std::to_string(i))
      return runOne(functions[i]);
  std::fprintf(stderr, "no case called '%s'\n", wanted.c_str());
  return 2;
}

} // namespace cases

#define DT_MAIN(...)                                                                                         \
  int main(int argc, char **argv) { return cases::run(#__VA_ARGS__, {__VA_ARGS__}, argc, argv); }
