#include "OpTable.h"

#include "Compat.h"

#include <algorithm>
#include <cstring>

namespace vcuda {
namespace {

const OpRule kRules[] = {
#include "OpRules.inc"
};

// Composed operators that run as one CPU kernel here: on CUDA they reach kernels a CPU build does not
// have, or have checks of their own.
const OpRule kComposed[] = {
    {kRulesVersion, "convolution", Rule::Convolution, "_cudnn_convolution"},
    {kRulesVersion, "copy_", Rule::Any, kCopyMethod},
    {kRulesVersion, "kaiser_window", Rule::Any, "_kaiser_window"},
    {kRulesVersion, "kaiser_window.periodic", Rule::Any, "_kaiser_window"},
    {kRulesVersion, "kaiser_window.beta", Rule::Any, "_kaiser_window"},
};

// Operators that update running_mean and running_var although their schemas do not say so.
const char *const kStatisticsUpdates[] = {"aten::native_batch_norm", "aten::batch_norm_update_stats"};

bool updatesStatistics(const std::string &op, const std::string &argument) {
  return (argument == "running_mean" || argument == "running_var") &&
         std::find(std::begin(kStatisticsUpdates), std::end(kStatisticsUpdates), op) !=
             std::end(kStatisticsUpdates);
}

bool isTensorType(const c10::Type &type) {
  if (type.kind() == c10::TypeKind::OptionalType)
    return isTensorType(*type.expectRef<c10::OptionalType>().getElementType());
  return type.kind() == c10::TypeKind::TensorType;
}

bool kindOf(const c10::Argument &argument, ArgKind &kind) {
  const c10::Type *type = argument.type().get();
  if (type->kind() == c10::TypeKind::OptionalType)
    type = type->expectRef<c10::OptionalType>().getElementType().get();
  switch (type->kind()) {
  case c10::TypeKind::TensorType:
    kind = ArgKind::Tensor;
    return true;
  case c10::TypeKind::ListType:
    kind = ArgKind::TensorList;
    return isTensorType(*type->expectRef<c10::ListType>().getElementType());
  case c10::TypeKind::GeneratorType:
    kind = ArgKind::Generator;
    return true;
  case c10::TypeKind::DeviceObjType:
    kind = ArgKind::Device;
    return true;
  default:
    return false;
  }
}

} // namespace

std::vector<OpRule> opRules() {
  std::vector<OpRule> rules(std::begin(kComposed), std::end(kComposed));
  for (const OpRule &rule : kRules)
    if (std::strcmp(rule.version, kRulesVersion) == 0)
      rules.push_back(rule);
  return rules;
}

OpInfo describe(const c10::FunctionSchema &schema, Rule rule, std::string method) {
  OpInfo info{rule,
              std::move(method),
              schema.arguments().size(),
              schema.returns().size(),
              schema.argumentIndexWithName("input_dtype").has_value(),
              {}};
  for (bool outputs : {true, false}) {
    for (size_t i = 0; i < schema.arguments().size(); ++i) {
      const c10::Argument &argument = schema.arguments()[i];
      ArgKind kind;
      if (argument.is_out() != outputs || !kindOf(argument, kind))
        continue;
      bool written = (argument.alias_info() && argument.alias_info()->isWrite()) ||
                     updatesStatistics(schema.name(), argument.name());
      const bool isKeyword = argument.kwarg_only() && !argument.is_out();
      info.args.push_back({i, kind, written, argument.is_out(), isKeyword, argument.name()});
    }
  }
  return info;
}

} // namespace vcuda
