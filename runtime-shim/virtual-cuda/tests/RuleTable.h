// The rule table as the tests read it, and what is needed to call an operator by its name.
#pragma once

#include "../Compat.h"
#include "DeviceErrors.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <fstream>
#include <sstream>

namespace support {

struct Operator {
  std::string name, rule, method;
};

// The rows of the LibTorch release the tests run with whose rule starts with `rule`.
inline std::vector<Operator> operatorsWithRule(const std::string &rule) {
  std::vector<Operator> operators;
  std::ifstream file(OP_RULES);
  for (std::string line; std::getline(file, line);) {
    std::istringstream cells(line);
    std::string version;
    Operator row;
    std::getline(cells, version, ',');
    std::getline(cells, row.name, ',');
    std::getline(cells, row.rule, ',');
    std::getline(cells, row.method, ',');
    if (version == vcuda::kRulesVersion && row.rule.rfind(rule, 0) == 0)
      operators.push_back(row);
  }
  return operators;
}

inline c10::optional<c10::OperatorHandle> findOperator(const std::string &name) {
  size_t dot = name.find('.');
  return c10::Dispatcher::singleton().findSchema(
      {"aten::" + name.substr(0, dot), dot == std::string::npos ? "" : name.substr(dot + 1)});
}

// Some value for an argument that is no tensor; none when the type has no obvious one.
inline c10::optional<c10::IValue> anyValue(const c10::Argument &argument) {
  if (argument.default_value())
    return argument.default_value();
  switch (argument.type()->kind()) {
  case c10::TypeKind::NumberType:
    return c10::IValue(at::Scalar(1));
  case c10::TypeKind::FloatType:
    return c10::IValue(0.5);
  case c10::TypeKind::IntType:
    return c10::IValue(int64_t(0));
  case c10::TypeKind::BoolType:
    return c10::IValue(false);
  case c10::TypeKind::OptionalType:
    return c10::IValue();
  default:
    return c10::nullopt;
  }
}

} // namespace support
