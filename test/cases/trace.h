// Included before a case program, writes to the file $CASE_TRACE what the program computes: a line with
// shape, type and a checksum for each tensor that an operator makes. Devices and moves are left out, and
// random numbers are the same on every device, so that two programs that differ in where they compute write
// the same lines.
#pragma once

#include <torch/torch.h>

#include <ATen/record_function.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <string>

namespace cases {

inline bool isOneOf(const std::string &name, std::initializer_list<const char *> words) {
  return std::find(words.begin(), words.end(), name) != words.end();
}

inline bool hasOneOf(const std::string &name, std::initializer_list<const char *> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const char *part) { return name.find(part) != std::string::npos; });
}

/// Operators that say where a tensor is, or how it is stored, and those that make one: what was computed
/// shows where it is used. Views of memory that nothing was written to yet would differ from run to run.
inline bool isLeftOut(const std::string &name) {
  return isOneOf(name, {"to",      "cpu",           "cuda",   "t",        "set_",    "item",   "clone",
                        "alias",   "split",         "chunk",  "unbind",   "unfold",  "narrow", "ones",
                        "zeros",   "full",          "arange", "linspace", "eye",     "rand",   "randn",
                        "randint", "scalar_tensor", "zero_",  "fill_",    "type_as", "stride"}) ||
         hasOneOf(name, {"copy",   "contiguous", "empty",   "detach",  "lift_fresh", "resize",  "strided",
                         "pin",    "_dense",     "stream",  "grad_",   "view",       "reshape", "expand",
                         "select", "slice",      "squeeze", "permute", "transpose",  "_like",   "resolve_"});
}

inline bool isRandom(const std::string &name) {
  return hasOneOf(name, {"rand", "normal", "uniform", "bernoulli", "dropout", "multinomial", "exponential"});
}

/// `aten::add_` -> `add_`
inline std::string operatorName(const at::RecordFunction &function) {
  const std::string name = function.name();
  const size_t colon = name.rfind(':');
  return colon == std::string::npos ? name : name.substr(colon + 1);
}

inline double checksum(const at::Tensor &tensor) {
  const at::Tensor values = tensor.detach().to(at::kCPU).to(at::kDouble).reshape({-1});
  return (values.nan_to_num(1e3, 1e4, -1e4) * at::linspace(1, 2, values.numel(), at::kDouble))
      .sum()
      .item<double>();
}

inline void writeTensor(std::FILE *out, const std::string &name, const at::Tensor &tensor) {
  if (!tensor.defined() || tensor.layout() != at::kStrided || tensor.is_quantized() || tensor.is_complex())
    return;
  std::fprintf(out, "%s: ", name.c_str());
  for (const int64_t size : tensor.sizes())
    std::fprintf(out, "%ld x ", static_cast<long>(size));
  std::fprintf(out, "%s: %.5g\n", c10::toString(tensor.scalar_type()), checksum(tensor));
}

inline std::FILE *traceFile() {
  static std::FILE *const file =
      std::getenv("CASE_TRACE") ? std::fopen(std::getenv("CASE_TRACE"), "w") : nullptr;
  return file;
}

inline void afterOperator(const at::RecordFunction &function, at::ObserverContext *) {
  const std::string name = operatorName(function);
  if (isLeftOut(name))
    return;
  const at::DisableRecordFunctionGuard quiet;
  const at::NoGradGuard noGrad;
  for (const c10::IValue &result : function.outputs())
    if (result.isTensor())
      writeTensor(traceFile(), name, result.toTensor());
  std::fflush(traceFile());
}

inline std::unique_ptr<at::ObserverContext> beforeOperator(const at::RecordFunction &function) {
  const at::DisableRecordFunctionGuard quiet;
  static uint64_t seed = 0;
  if (isRandom(operatorName(function)))
    torch::manual_seed(++seed);
  return nullptr;
}

inline bool startTrace() {
  if (traceFile())
    at::addGlobalCallback(at::RecordFunctionCallback(beforeOperator, afterOperator)
                              .needsOutputs(true)
                              .scopes({at::RecordScope::FUNCTION}));
  return traceFile() != nullptr;
}

inline const bool isTracing = startTrace();

} // namespace cases
