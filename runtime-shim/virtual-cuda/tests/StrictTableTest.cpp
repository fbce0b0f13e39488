// Every operator that the table calls strict: with one operand on another device it throws what the
// generated wrapper of a CUDA build throws, with the argument's and the method's name, whatever its shapes
// and other arguments are.
#include "StrictCalls.h"
#include "TestSupport.h"

#include <algorithm>

using namespace support;

namespace {

TEST(StrictTable, EveryStrictOperatorThrowsTheWrappersText) {
  int operators = 0, calls = 0;
  std::vector<std::string> others;
  for (const Operator &row : operatorsWithRule("strict")) {
    auto op = findOperator(row.name);
    if (!op || !op->hasKernelForDispatchKey(c10::DispatchKey::CUDA))
      continue;
    const auto &arguments = op->schema().arguments();
    const auto number = [&](auto holds) {
      return static_cast<size_t>(std::count_if(arguments.begin(), arguments.end(), holds));
    };
    const size_t count = number([](auto &argument) { return holdsTensors(argument.type()); });
    if (number(isCompared) < 2)
      continue;
    ++operators;
    for (size_t moved = 0; moved < count; ++moved) {
      torch::Device elsewhere = moved % 2 ? gpu1 : cpu;
      auto text = textOf(*op, moved, elsewhere);
      if (!text)
        continue;
      ++calls;
      std::string method = std::string(isTorch1 ? "wrapper_" : "wrapper_CUDA_") + row.method + ")";
      bool fits = text->rfind(kSameDevice, 0) == 0 && text->size() > method.size() &&
                  text->compare(text->size() - method.size(), method.size(), method) == 0;
      if (!fits)
        others.push_back(row.name + ", operand " + std::to_string(moved) + ": " + *text);
    }
  }
  for (const std::string &other : others)
    ADD_FAILURE() << other;
  EXPECT_GT(operators, 250);
  EXPECT_GT(calls, 700);
}

} // namespace
