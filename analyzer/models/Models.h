//===- Models.h - what LibTorch does, by name -------------------*- C++ -*-===//
//
// Look-ups over the tables in data/*.csv. The words of the tables are explained in embed.py. No clang, no
// LLVM.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/models/Rows.h"

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace devicetidy::models {

struct TorchVersion {
  int major = 0;
  int minor = 0;
};

enum class Rule : unsigned char {
  Strict,
  Iterator,
  Third,
  SameSelf,
  Index,
  IndexPut,
  Where,
  MaskedFill,
  Factory,
  Blob,
  Like,
  Move,
  ToCpu,
  ToCuda,
  TypeAs,
  PinMemory,
  Host,
  CpuLengths,
  SetData,
  Sequential,
  Functional,
  Modules,
  Parameters,
};
enum class Result : unsigned char { Common, Self, Pieces, Cpu, None, Unknown };
enum class Rank : unsigned char {
  Zero,
  One,
  Two,
  Some,
  Unknown,
  Keep,
  More,
  Less,
  Second,
  Same,
  Common,
  Size,
  Data,
  Grow,
  Reduce,
  Loss,
  Squeeze,
  Diagonal,
  Matmul,
  Einsum,
  Index,
};

struct Op {
  std::string_view name;
  Rule rule = Rule::SameSelf;
  Result result = Result::Unknown;
  Rank rank = Rank::Unknown;
  bool isLoss = false;
  bool isView = false; ///< the result may share the storage of the first tensor, or be that tensor
};

struct Module {
  Op forward;
  bool hasParameters = false;
  bool hasOneParameter = false;
  bool hasOtherParameters = false; ///< than a weight and a bias
  bool hasOptionalWeight = false;  ///< a loss whose options may hold tensors
};

/// The rule of an ATen operator by base name ("add_", "operator+"); null when it is not modelled for this
/// version.
const Op *atenOp(std::string_view name, TorchVersion version);
/// The rule of a torch::nn::functional function; null when not modelled.
const Op *functional(std::string_view name, TorchVersion version);
/// A module class of torch::nn by its qualified name ("torch::nn::LinearImpl"), with the name its users write
/// as that of `forward`; null when not modelled.
const Module *module(std::string_view className);
/// The rows of a function or class by its qualified name, built-in ones and the user's, in the order they are
/// to be asked; empty when there are none.
const std::vector<Row> &rows(std::string_view name);
/// The effect `word` in `rows`; null when they have none.
const Effect *effect(const std::vector<Row> &rows, std::string_view word);
/// The effect `word` in the rows of `name` ("c10::cuda::CUDAGuard", "guard"); null when they have none.
const Effect *effect(std::string_view name, std::string_view word);
/// Every name that has built-in rows, sorted.
std::vector<std::string_view> modelledNames();
/// Every name in the tables and in the user's rows, with what it is: "operator", "functional", "module",
/// "class" or "effects"; sorted.
std::set<std::pair<std::string_view, std::string>> tableNames();
/// Kind of a library class template ("std::vector" -> "list"), empty when unknown.
std::string_view typeKind(std::string_view templateName);
/// The kinds there are, sorted.
std::vector<std::string_view> typeKinds();
/// Does `name` have `role` in distributed.csv or words.csv?
bool hasRole(std::string_view name, std::string_view role);
/// The first name of `role` that occurs in `text`, empty when none does.
std::string_view findRole(std::string_view text, std::string_view role);

} // namespace devicetidy::models
