#include "params/ShardedParts.h"

#include <algorithm>
#include <map>
#include <mutex>

namespace device_shim::detail {
namespace {

struct Known {
  std::mutex mutex;
  std::map<const void *, std::shared_ptr<Communicator>> parts;
  std::vector<c10::weak_intrusive_ptr<c10::TensorImpl>> ended; // that an optimizer may still have
};

// Never destroyed: models may live as long as the process.
Known &known() {
  static auto *all = new Known;
  return *all;
}

} // namespace

ShardedPart::ShardedPart(const at::Tensor &ofTensor, std::shared_ptr<Communicator> ranks) : part(ofTensor) {
  std::lock_guard<std::mutex> lock(known().mutex);
  known().parts[part.unsafeGetTensorImpl()] = std::move(ranks);
}

ShardedPart::~ShardedPart() {
  std::lock_guard<std::mutex> lock(known().mutex);
  known().parts.erase(part.unsafeGetTensorImpl());
  auto &ended = known().ended;
  ended.erase(std::remove_if(ended.begin(), ended.end(), [](const auto &weak) { return weak.expired(); }),
              ended.end());
  ended.emplace_back(part.getIntrusivePtr());
}

std::vector<std::shared_ptr<Communicator>> spreadOver(const std::vector<at::Tensor> &tensors) {
  std::lock_guard<std::mutex> lock(known().mutex);
  std::vector<std::shared_ptr<Communicator>> found;
  for (const auto &tensor : tensors) {
    const auto entry = known().parts.find(tensor.unsafeGetTensorImpl());
    if (entry != known().parts.end() && std::find(found.begin(), found.end(), entry->second) == found.end())
      found.push_back(entry->second);
  }
  return found;
}

bool anyEnded(const std::vector<at::Tensor> &tensors) {
  std::lock_guard<std::mutex> lock(known().mutex);
  const auto has = [](const at::Tensor &tensor) {
    return std::any_of(known().ended.begin(), known().ended.end(), [&](const auto &weak) {
      return weak._unsafe_get_target() == tensor.unsafeGetTensorImpl();
    });
  };
  return std::any_of(tensors.begin(), tensors.end(), has);
}

} // namespace device_shim::detail
