//===- Ranks.cpp - how many dimensions the result of an operation has ---===//
//
// A 0-dim tensor on the CPU may meet tensors on a GPU; any other may not. So what matters is whether a result
// has no dimension, at least one, or an unknown number.
//
//===----------------------------------------------------------------------===//
#include "analyzer/solve/library/torch/Ranks.h"

#include "analyzer/solve/domain/Registers.h"

#include <algorithm>
#include <cctype>

namespace devicetidy {

namespace {

using models::Op;
using models::Rank;

constexpr std::string_view sliceType = "at::indexing::Slice";

// As many as the size argument has elements: an empty list is a scalar.
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

// How many elements literal sizes ask for, -1 when it is not known.
std::int64_t countOfSizes(const Call &call) {
  for (std::size_t i = 0; i < call.fact.operands.size(); ++i) {
    Value value = call.operand(i);
    if (!is(value, ValueKind::List) || isSummary(value))
      continue;
    std::int64_t count = 1;
    for (const Value &size : value->elements) {
      auto number = call.row.numberOf(size);
      if (number == 0 && &size == &value->elements.front()) // whatever the other sizes are
        return 0;
      const bool isKnown = number && *number > 0 && *number <= 1000000;
      count = isKnown && count > 0 ? count * *number : -1;
    }
    return count;
  }
  return -1;
}

// An integer, an optional one, or several of them.
bool namesDimensions(const Types &types, Name type) {
  const Type *known = types.program.type(type);
  switch (types.classOf(type)) {
  case TypeClass::List:
    return true;
  case TypeClass::Optional:
    return namesDimensions(types, types.inner(type));
  default:
    return known && known->kind == TypeKind::Int;
  }
}

// Does the call name dimensions? sum(1), max(0), mean({1, 2}) do, sum(), sum(kFloat), norm(2.0), std(false)
// do not.
bool namesDimension(const Call &call) {
  for (std::size_t i = 0; i < call.fact.operands.size(); ++i) {
    Value value = call.operand(i);
    if (!is(value, ValueKind::Null) && !is(value, ValueKind::Tensor) &&
        namesDimensions(call.machine.types, call.fact.operands[i].type))
      return true;
  }
  return false;
}

// squeeze(1) and sum(1) fail for tensors that have but one dimension; norm(2) is given no dimension.
bool namesLaterDimension(const Call &call) {
  const std::size_t at = call.argCount() > 0 && is(call.arg(0), ValueKind::Tensor) ? 1 : 0;
  const auto number = call.argCount() > at ? call.row.numberOf(call.arg(at)) : std::nullopt;
  return number && *number > 0 && !endsWith(call.fact.name.view(), "norm");
}

// keepdim = true
bool keepsDimensions(const Call &call) {
  for (std::size_t i = 0; i < call.fact.operands.size(); ++i)
    if (const Type *type = call.machine.types.program.type(call.fact.operands[i].type);
        type && type->kind == TypeKind::Bool && call.row.numberOf(call.operand(i)) == 1)
      return true;
  return false;
}

int commonRank(const std::vector<TensorUse> &uses) {
  int rank = 0;
  for (const TensorUse &use : uses) {
    const int own = use.tensor->rank;
    if (own == someRank || rank == someRank)
      rank = own > 0 ? own : rank > 0 ? rank : someRank;
    else if (isOpenRank(own) || isOpenRank(rank))
      rank = std::max(own, rank) > 0                     ? std::max(own, rank)
             : own == unknownRank || rank == unknownRank ? unknownRank
                                                         : partRank;
    else
      rank = std::max(rank, own);
  }
  return rank;
}

bool reductionIsNone(const Call &call) {
  // at::Reduction::None is 0; it is the first integer that a loss is given.
  for (std::size_t i = 0; i < call.fact.operands.size(); ++i) {
    Value value = call.operand(i);
    if (is(value, ValueKind::Scalar) && call.machine.types.isInteger(call.fact.operands[i].type))
      return constantOf(value->term) == 0;
  }
  return false;
}

// matmul(a, b): two vectors give a scalar, a vector takes away one dimension of a matrix.
int matmulRank(const std::vector<TensorUse> &uses) {
  if (uses.size() < 2)
    return unknownRank;
  const int a = uses[0].tensor->rank, b = uses[1].tensor->rank;
  if (a == 0 || b == 0 || isOpenRank(a) || isOpenRank(b))
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
    } else if (call.machine.types.derivesFrom(index->type, sliceType)) {
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

// squeeze(): what is left of several dimensions is not known; a dimension that is named is one of several.
int squeezeRank(const Call &call, int self) {
  return namesDimension(call) && (self > 1 || namesLaterDimension(call)) ? someRank : unknownRank;
}

// cat and its like: all tensors have the same number of dimensions, and at least one.
int sameRank(const std::vector<TensorUse> &uses) {
  for (const TensorUse &use : uses)
    if (use.tensor->rank > 0)
      return use.tensor->rank;
  return someRank;
}

// sum() and its like; max(a, b) is an operator of two tensors.
int reducedRank(const Call &call, int self, const std::vector<TensorUse> &uses) {
  if (uses.size() > 1)
    return commonRank(uses);
  if (!namesDimension(call))
    return 0;
  const int left = self > 1 ? self - 1 : namesLaterDimension(call) ? someRank : unknownRank;
  return keepsDimensions(call) ? self : left;
}

// expand_as(other), gather(0, index): as many as the other has, which are no fewer.
int secondRank(int self, const std::vector<TensorUse> &uses) {
  const int second = uses.size() > 1 ? uses[1].tensor->rank : unknownRank;
  return isOpenRank(second) && (self > 0 || self == someRank) ? someRank : second;
}

// expand() and repeat() never take a dimension away.
int grownRank(const Call &call, int self) {
  const int given = rankOfSizes(call);
  const bool hasNumber = call.fact.operands.size() > 1 && is(call.operand(1), ValueKind::Scalar);
  return given >= 0 || self > 0 || self == someRank || hasNumber ? given : unknownRank;
}

// How deep the braces of tensor({{1, 2}, {3, 4}}) are: as many dimensions it has.
int rankOfData(const Call &call) {
  if (call.fact.operands.empty())
    return someRank;
  const Value data = call.operand(0);
  if (is(data, ValueKind::Scalar) ||
      call.machine.types.classOf(call.fact.operands[0].type) == TypeClass::Scalar)
    return 0;
  int depth = 0;
  Value level = data;
  for (; is(level, ValueKind::List) && !isSummary(level) && !level->elements.empty(); ++depth)
    level = Value(level->elements.front());
  return depth > 0 && is(level, ValueKind::Scalar) ? depth : someRank;
}

} // namespace

int resultRank(const Call &call, const Op &op, const std::vector<TensorUse> &uses) {
  const int self = uses.empty() ? unknownRank : uses[0].tensor->rank;
  switch (op.rank) {
  case Rank::Zero:
    return 0;
  case Rank::One:
    return 1;
  case Rank::Two:
    return 2;
  case Rank::Some:
    return someRank;
  case Rank::Unknown:
    return unknownRank;
  case Rank::Keep:
    return self;
  case Rank::More:
    return self >= 0 ? self + 1 : someRank;
  case Rank::Less:
    return self > 0 ? self - 1 : isOpenRank(self) ? partRank : unknownRank;
  case Rank::Second:
    return secondRank(self, uses);
  case Rank::Same:
    return sameRank(uses);
  case Rank::Common:
    return commonRank(uses);
  case Rank::Size:
    return rankOfSizes(call);
  case Rank::Data:
    return rankOfData(call);
  case Rank::Grow:
    return grownRank(call, self);
  case Rank::Reduce:
    return reducedRank(call, self, uses);
  case Rank::Loss:
    return reductionIsNone(call) ? someRank : 0;
  case Rank::Squeeze:
    return squeezeRank(call, self);
  case Rank::Diagonal:
    return self > 0 || self == someRank ? someRank : unknownRank;
  case Rank::Matmul:
    return matmulRank(uses);
  case Rank::Einsum:
    return einsumRank(call);
  case Rank::Index:
    return indexRank(call, self, uses);
  }
  return unknownRank;
}

std::int64_t resultCount(const Call &call, const Op &op) {
  if (op.rank == Rank::Size)
    return countOfSizes(call);
  if (op.rank == Rank::Data && rankOfData(call) == 1 && is(call.operand(0), ValueKind::List))
    return static_cast<std::int64_t>(call.operand(0)->elements.size());
  return -1;
}

} // namespace devicetidy
