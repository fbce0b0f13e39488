#include "params/WrapperClaim.h"

#include "params/DistinctParameters.h"

#include <device_shim/Error.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <string>
#include <utility>

namespace device_shim::detail {
namespace {

struct Claims {
  std::mutex mutex;
  std::multiset<std::pair<const void *, Wrapper>> all; // frozen parameters may have several of one kind
};

// Never destroyed: models may live as long as the process.
Claims &claims() {
  static auto *all = new Claims;
  return *all;
}

const char *nameOf(Wrapper wrapper) {
  return wrapper == Wrapper::dataParallel ? "DistributedDataParallel"
         : wrapper == Wrapper::sharded    ? "ShardedDataParallel"
                                          : "dispatch_model";
}

// Two that average leave a frozen parameter alone, such as that of a feature extractor which two models
// share.
bool together(Wrapper first, Wrapper second, const at::Tensor &parameter) {
  return second == Wrapper::dataParallel &&
         (first == Wrapper::dispatched || (first == Wrapper::dataParallel && !parameter.requires_grad()));
}

void requireUnclaimed(const DistinctParameter &parameter, Wrapper wanted) {
  for (const auto other : {Wrapper::dataParallel, Wrapper::sharded, Wrapper::dispatched})
    if (!together(other, wanted, parameter.value) &&
        claims().all.count({parameter.value.unsafeGetTensorImpl(), other}))
      throw UsageError(std::string(nameOf(wanted)) + ": parameter " + parameter.name +
                       " belongs to a wrapper already, of " + nameOf(other) +
                       "; a model is either data-parallel, sharded or dispatched, and once. Use the wrapper "
                       "there is, or end it first");
}

void requireNotEmptied(const std::vector<DistinctParameter> &parameters, Wrapper wanted) {
  const auto empty = [](const auto &parameter) { return parameter.value.numel() == 0; };
  if (!parameters.empty() && std::all_of(parameters.begin(), parameters.end(), empty))
    throw UsageError(std::string(nameOf(wanted)) +
                     ": the parameters of this model are empty, as ShardedDataParallel with stage 3 leaves "
                     "them when it ends; make the model again, and load() what save() wrote");
}

} // namespace

WrapperClaim::WrapperClaim(const torch::nn::Module &module, Wrapper wanted) : wrapper(wanted) {
  const auto parameters = distinctParameters(module);
  std::lock_guard<std::mutex> lock(claims().mutex);
  for (const auto &parameter : parameters)
    requireUnclaimed(parameter, wanted);
  requireNotEmptied(parameters, wanted);
  for (const auto &parameter : parameters) {
    claimed.push_back(parameter.value);
    claims().all.emplace(parameter.value.unsafeGetTensorImpl(), wanted);
  }
}

WrapperClaim::~WrapperClaim() {
  std::lock_guard<std::mutex> lock(claims().mutex);
  for (const auto &parameter : claimed)
    claims().all.erase(claims().all.find({parameter.unsafeGetTensorImpl(), wrapper}));
}

bool anySharded(const std::vector<at::Tensor> &parameters) {
  std::lock_guard<std::mutex> lock(claims().mutex);
  return std::any_of(parameters.begin(), parameters.end(), [](const at::Tensor &parameter) {
    return claims().all.count({parameter.unsafeGetTensorImpl(), Wrapper::sharded}) > 0;
  });
}

bool isExchanged(const at::Tensor &parameter) {
  std::lock_guard<std::mutex> lock(claims().mutex);
  const auto *identity = parameter.unsafeGetTensorImpl();
  return claims().all.count({identity, Wrapper::dataParallel}) > 0 ||
         claims().all.count({identity, Wrapper::sharded}) > 0;
}

void requireNotSharded(const std::vector<at::Tensor> &ofOptimizer) {
  if (anySharded(ofOptimizer))
    throw UsageError("the optimizer was made of the parameters of a module that ShardedDataParallel has "
                     "sharded, where no gradients come to; make it of optimizer_parameters()");
}

} // namespace device_shim::detail
