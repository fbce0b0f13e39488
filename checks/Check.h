//===- Check.h - what every check is ----------------------------*- C++ -*-===//
//
// A check takes answers of the solver and reports those that are mistakes. It analyses nothing itself and
// holds no text: its sentences are in checks.json, its findings are plain values.
//
// `python3 checks/generate.py --new device-some-name` makes the files of a new check; docs/checks/index.md
// lists all.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/report/finding/Finding.h"

#include <functional>
#include <string>
#include <string_view>

namespace devicetidy {

struct CheckContext {
  const Program &program;
  /// The value that an option of `check` has for `file`; an option must be in checks.json before it is asked
  /// for.
  std::function<std::string(std::string_view check, Name file, std::string_view option)> option;
};

class Check {
public:
  virtual ~Check() = default;
  /// The name users select the check by.
  virtual std::string_view name() const = 0;
  virtual void run(const Solution &solution, const CheckContext &context,
                   std::vector<Finding> &findings) const = 0;
};

} // namespace devicetidy
