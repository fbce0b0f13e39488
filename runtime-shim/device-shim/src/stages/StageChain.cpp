#include <device_shim/StageChain.h>

#include <device_shim/Error.h>

#include <c10/util/Type.h>

#include <algorithm>
#include <optional>
#include <set>
#include <typeinfo>

namespace device_shim {
namespace {

std::string joined(const std::string &path, const std::string &name) {
  return path.empty() ? name : path + "." + name;
}

void findStages(const std::shared_ptr<torch::nn::Module> &module, const std::string &path,
                std::vector<StageChain::Link> &found, size_t &last) {
  if (auto stage = std::dynamic_pointer_cast<StageBase>(module)) {
    const auto known = std::find_if(found.begin(), found.end(),
                                    [&](const StageChain::Link &link) { return link.stage == stage; });
    last = static_cast<size_t>(known - found.begin());
    if (known == found.end())
      found.push_back({path, {}, module, std::move(stage), nullptr});
    else
      known->aliases.push_back(path);
    return;
  }
  for (const auto &child : module->named_children())
    findStages(child.value(), joined(path, child.key()), found, last);
}

template <typename T> bool collectFrom(std::vector<at::Tensor *> &found, torch::nn::AnyValue &value) {
  auto *content = value.try_get<T>();
  if (content)
    detail::collect(found, *content);
  return content != nullptr;
}

template <typename... T> bool collectFromOneOf(std::vector<at::Tensor *> &found, torch::nn::AnyValue &value) {
  return (collectFrom<T>(found, value) || ...);
}

// The results of LibTorch's own modules, and common results of other modules.
std::vector<at::Tensor *> tensorsIn(torch::nn::AnyValue &value, const std::string &child) {
  using at::Tensor;
  using Pair = std::tuple<Tensor, Tensor>;
  std::vector<Tensor *> found;
  if (!collectFromOneOf<Tensor, Pair, std::tuple<Tensor, Pair>, std::tuple<Tensor, Tensor, Tensor>,
                        std::tuple<Tensor, Tensor, Tensor, Tensor>, std::pair<Tensor, Tensor>,
                        std::vector<Tensor>, double, float, int, int64_t, bool>(found, value))
    throw UsageError(
        "child '" + child + "' of the Sequential returns " + c10::demangle(value.type_info().name()) +
        ", in which its tensors cannot be found; return a tensor, a std::vector or std::tuple of "
        "tensors, or write a model whose layers are held as device_shim::Stage<Layer>");
  return found;
}

} // namespace

StageChain::StageChain(std::shared_ptr<torch::nn::Module> ofRoot) : root(std::move(ofRoot)) {
  if (!root)
    throw UsageError("a model of stages is wanted, but the pointer to it is null");
  if (const auto &module = *root; typeid(module) == typeid(torch::nn::SequentialImpl))
    sequential = std::dynamic_pointer_cast<torch::nn::SequentialImpl>(root);
  if (sequential)
    for (const auto &child : sequential->named_children())
      all.push_back({child.key(), {}, child.value(), nullptr, nullptr});
  else
    findStages(root, "", all, lastLink);
  if (sequential && !all.empty())
    lastLink = all.size() - 1;
  std::set<const void *> owned;
  for (const auto &link : all) {
    for (const auto &parameter : link.module->parameters())
      owned.insert(parameter.unsafeGetTensorImpl());
    for (const auto &buffer : link.module->buffers())
      owned.insert(buffer.unsafeGetTensorImpl());
  }
  for (const auto &entry : root->named_parameters())
    if (!owned.count(entry.value().unsafeGetTensorImpl()))
      homelessParameters.push_back(entry.key());
  for (const auto &entry : root->named_buffers())
    if (!owned.count(entry.value().unsafeGetTensorImpl()))
      homelessBuffers.push_back(entry.key());
}

StageChain::~StageChain() {
  for (auto &link : all)
    if (link.stage && link.hooks)
      link.stage->set_hooks(nullptr);
}

void StageChain::require_complete(const std::string &purpose, bool buffers) const {
  auto homeless = homelessParameters;
  if (buffers)
    homeless.insert(homeless.end(), homelessBuffers.begin(), homelessBuffers.end());
  if (homeless.empty() && !all.empty())
    return;
  std::string names;
  for (size_t i = 0; i < homeless.size() && i < 6; ++i)
    names += (i ? ", " : "") + homeless[i];
  if (homeless.size() > 6)
    names += ", ...";
  const bool isDerived = !sequential && std::dynamic_pointer_cast<torch::nn::SequentialImpl>(root);
  throw UsageError(
      purpose +
      " works on a torch::nn::Sequential, or on a model whose layers are held as "
      "device_shim::Stage<Layer>, because LibTorch's modules have no forward hooks. " +
      (isDerived ? "A class derived from torch::nn::Sequential may have a forward() of its own. " : "") +
      (all.empty() ? "This model has no stage" : "These belong to no stage: " + names) +
      ". Declare the members that hold them as, for example, device_shim::Stage<torch::nn::Linear>, and "
      "give parameters of the model itself a module of their own");
}

void StageChain::install(size_t link, std::shared_ptr<StageHooks> hooks) {
  auto &chosen = all.at(link);
  if (chosen.stage)
    chosen.stage->set_hooks(hooks);
  chosen.hooks = std::move(hooks);
}

void StageChain::require_unused() const {
  for (const auto &link : all)
    if (link.stage && link.stage->hooks())
      throw UsageError("stage '" + link.name +
                       "' belongs to a wrapper already; a model is either sharded or dispatched, and once");
}

// A child that came later has no hooks, and its parameters belong to no wrapper.
void StageChain::requireSameChildren() const {
  size_t index = 0;
  for (const auto &child : *sequential) {
    if (index >= all.size() || child.ptr() != all[index].module)
      throw UsageError("child " + std::to_string(index) +
                       " of the Sequential was added or replaced after the Sequential was wrapped; make it "
                       "whole first, and wrap it then");
    ++index;
  }
}

at::Tensor StageChain::runFrom(std::vector<at::Tensor *> tensors,
                               const std::function<torch::nn::AnyValue(torch::nn::AnyModule &)> &first) {
  requireSameChildren();
  torch::nn::AnyValue value{at::Tensor()};
  size_t index = 0;
  for (auto child = sequential->begin(); child != sequential->end(); ++child, ++index) {
    const auto &link = all[index];
    std::optional<detail::StageCall> call;
    if (link.hooks)
      call.emplace(*link.hooks, tensors, /*byReference=*/false);
    value = index == 0 ? first(*child) : child->any_forward(std::move(value));
    tensors = tensorsIn(value, link.name);
    if (call)
      call->end(tensors, {});
  }
  return value.get<at::Tensor>();
}

} // namespace device_shim
