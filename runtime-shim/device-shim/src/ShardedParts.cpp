#include "ShardedParts.h"

#include <algorithm>
#include <map>
#include <mutex>

namespace device_shim::detail {
namespace {

struct Known {
  std::mutex mutex;
  std::map<const void *, std::shared_ptr<Communicator>> parts;
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

} // namespace device_shim::detail
