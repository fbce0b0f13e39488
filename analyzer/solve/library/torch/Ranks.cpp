//===- Ranks.cpp - how many dimensions the result of an operation has ---===//
//
// A 0-dim tensor on the CPU may meet tensors on a GPU; any other may not. So what matters is whether a result
// has no dimension, at least one, or nobody knows.
//
//===----------------------------------------------------------------------===//
#include "analyzer/solve/library/torch/Ranks.h"

#include "analyzer/solve/domain/NameParts.h"
#include "analyzer/solve/domain/Registers.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace devicetidy {

int rankOfSizes(const Call &call) {
  for (const Operand &operand : call.fact.operands) {
    const TypeClass type = call.machine.types.classOf(operand.type);
    if (type != TypeClass::List && type != TypeClass::Wrapper)
      continue;
    Value value = registerOf(call.row, operand.reg);
    if (operand.isAddress && is(value, ValueKind::Address))
      value = call.machine.memory.read(call.row, value->address);
    if (is(value, ValueKind::List) && !isSummary(value))
      return static_cast<int>(value->elements.size());
    return someRank;
  }
  return someRank;
}

std::int64_t countOfSizes(const Call &call) {
  for (std::size_t i = 0; i < call.fact.operands.size(); ++i) {
    Value value = call.operand(i);
    if (!is(value, ValueKind::List) || isSummary(value))
      continue;
    std::int64_t count = 1;
    for (const Value &size : value->elements) {
      auto number = call.row.numberOf(size);
      if (!number || *number < 0 || *number > 1000000)
        return -1;
      count *= *number;
    }
    return count;
  }
  return -1;
}

namespace {

using models::Op;
using models::Rank0;

// Does the call name dimensions? sum(1), max(0), mean({1, 2}) do, sum(), sum(kFloat), norm(2.0), std(false)
// do not.
bool namesDimension(const Call &call) {
  for (std::size_t i = 0; i < call.fact.operands.size(); ++i) {
    Value value = call.operand(i);
    if (is(value, ValueKind::Null) || is(value, ValueKind::Tensor))
      continue;
    const std::string &type = call.fact.operands[i].type.str();
    if (type.find("ArrayRef") != std::string::npos || type.find("initializer_list") != std::string::npos ||
        type == "long" || type == "int" || type == "long long" || type == "c10::SymInt" ||
        type.find("vector") != std::string::npos || type.find("optional<long>") != std::string::npos)
      return true;
  }
  return false;
}

// squeeze(1) fails for tensors that have but one dimension.
bool namesLaterDimension(const Call &call) {
  const Value dimension = call.argCount() ? call.arg(0) : unknownValue();
  const auto number = call.row.numberOf(dimension);
  return number && *number > 0;
}

// keepdim = true
bool keepsDimensions(const Call &call) {
  for (std::size_t i = 0; i < call.fact.operands.size(); ++i)
    if (call.fact.operands[i].type == Name("bool"))
      if (Value value = call.operand(i); is(value, ValueKind::Scalar) && constantOf(value->term) == 1)
        return true;
  return false;
}

int commonRank(const std::vector<TensorUse> &uses) {
  int rank = 0;
  for (const TensorUse &use : uses) {
    const int own = use.tensor->rank;
    if (own == someRank || rank == someRank)
      rank = own > 0 ? own : rank > 0 ? rank : someRank;
    else if (own == unknownRank || rank == unknownRank)
      rank = std::max(own, rank) > 0 ? std::max(own, rank) : unknownRank;
    else
      rank = std::max(rank, own);
  }
  return rank;
}

bool reductionIsNone(const Call &call) {
  // at::Reduction::None is 0; it is the one integer that is no size or index of a loss.
  for (std::size_t i = 0; i < call.fact.operands.size(); ++i) {
    Value value = call.operand(i);
    if (is(value, ValueKind::Scalar) && call.fact.operands[i].type == Name("long"))
      return constantOf(value->term) == 0;
  }
  return false;
}

// Operations that give a tensor of as many or more dimensions, or of at least one.
bool keepsShape(std::string_view op) {
  static const std::set<std::string_view> names = {
      "expand",        "expand_as", "transpose",   "permute", "t",       "view_as",  "reshape_as",
      "narrow",        "slice",     "repeat",      "flatten", "movedim", "swapaxes", "tril",
      "triu",          "flip",      "roll",        "unfold",  "cumsum",  "sort",     "repeat_interleave",
      "masked_select", "nonzero",   "embedding",   "conv1d",  "conv2d",  "linear",   "index_select",
      "gather",        "softmax",   "log_softmax", "one_hot", "pad"};
  return names.count(op) != 0;
}

// matmul(a, b): two vectors give a scalar, a vector takes away one dimension of a matrix.
int matmulRank(const std::vector<TensorUse> &uses) {
  if (uses.size() < 2)
    return unknownRank;
  const int a = uses[0].tensor->rank, b = uses[1].tensor->rank;
  if (a == 0 || b == 0 || a == unknownRank || b == unknownRank)
    return a > 1 || b > 1 ? someRank : unknownRank;
  if (a == someRank || b == someRank)
    return someRank;
  if (a == 1 && b == 1)
    return 0;
  return a == 1 || b == 1 ? std::max(a, b) - 1 : std::max(a, b);
}

// einsum("ij,jk->ik", ...): the letters behind the arrow, where no ellipsis stands for more.
int einsumRank(const Call &call) {
  Value equation = call.argCount() ? call.arg(0) : unknownValue();
  const std::optional<Name> text =
      is(equation, ValueKind::Scalar) ? textOf(call.row.resolve(equation->term)) : std::nullopt;
  const std::size_t arrow = text ? text->view().find("->") : std::string_view::npos;
  if (arrow == std::string_view::npos)
    return unknownRank;
  const std::string_view result = text->view().substr(arrow + 2);
  const auto letters = static_cast<int>(std::count_if(
      result.begin(), result.end(), [](unsigned char letter) { return std::isalpha(letter) != 0; }));
  return result.find('.') == std::string_view::npos ? letters : letters > 0 ? someRank : unknownRank;
}

// x.index({...}): a number takes a dimension away, None adds one, a slice or a tensor of indices keeps one.
int indexRank(const Call &call, int self, const std::vector<TensorUse> &uses) {
  const Value indices = call.argCount() ? call.arg(0) : unknownValue();
  if (!is(indices, ValueKind::List) || isSummary(indices))
    return uses.size() > 1 ? someRank : unknownRank;
  int numbers = 0, added = 0;
  bool keepsOne = false, isPlain = true;
  for (const Value &index : indices->elements) {
    const bool isText = is(index, ValueKind::Scalar) && textOf(call.row.resolve(index->term));
    if (is(index, ValueKind::Null)) {
      ++added;
    } else if (is(index, ValueKind::Scalar) && !isText) {
      ++numbers;
    } else if (is(index, ValueKind::Record) && lastPart(index->type.view()) == "Slice") {
      keepsOne = true;
    } else if (is(index, ValueKind::Tensor)) {
      keepsOne = keepsOne || index->rank != 0;
      isPlain = false;
    } else if (!isText && !is(index, ValueKind::Record)) { // neither "..." nor Ellipsis
      isPlain = false;
    }
  }
  if (self >= 0 && isPlain)
    return std::max(self - numbers, 0) + added;
  return keepsOne || added > 0 ? someRank : unknownRank;
}

// Rank of the result of the operations whose shape has a rule of its own.
int shapeOf(const Call &call, std::string_view op, const std::vector<TensorUse> &uses) {
  const int self = uses.empty() ? unknownRank : uses[0].tensor->rank;
  if (op == "select" || op == "operator[]" || op == "unbind")
    return self > 0 ? self - 1 : unknownRank;
  if (op == "unsqueeze" || op == "unsqueeze_")
    return self >= 0 ? self + 1 : someRank;
  if (op == "squeeze")
    return namesDimension(call) && (self > 1 || namesLaterDimension(call)) ? someRank : unknownRank;
  if (op == "diag" || op == "diagonal")
    return self > 0 || self == someRank ? someRank : unknownRank;
  if (op == "view" || op == "reshape")
    return rankOfSizes(call);
  if (op == "matmul")
    return matmulRank(uses);
  if (op == "where")
    return commonRank(uses);
  if (op == "einsum")
    return einsumRank(call);
  if (op == "index")
    return indexRank(call, self, uses);
  if (keepsShape(op) && self != 0 && self != unknownRank)
    return self > 0 ? self : someRank;
  return unknownRank;
}

} // namespace

int resultRank(const Call &call, const Op &op, const std::vector<TensorUse> &uses) {
  const int self = uses.empty() ? unknownRank : uses[0].tensor->rank;
  switch (op.rank0) {
  case Rank0::Yes:
    return 0;
  case Rank0::No:
    if (op.name == "cat" || op.name == "concat" || op.name == "Linear" || op.name == "Dropout")
      return self > 0                                                             ? self
             : op.name == "Linear" && uses.size() > 1 && uses[1].tensor->rank > 0 ? uses[1].tensor->rank
                                                                                  : someRank;
    if (op.name == "stack")
      return self >= 0 ? self + 1 : someRank;
    return someRank;
  case Rank0::Keep:
    return self;
  case Rank0::Common:
    return commonRank(uses);
  case Rank0::Reduce:
    if (uses.size() > 1)
      return commonRank(uses);
    if (!namesDimension(call))
      return 0;
    return keepsDimensions(call) ? self : self > 1 ? self - 1 : unknownRank;
  case Rank0::Loss:
    return reductionIsNone(call) ? someRank : 0;
  case Rank0::Size:
    return rankOfSizes(call);
  case Rank0::Unknown:
    break;
  }
  return shapeOf(call, op.name, uses);
}

} // namespace devicetidy
