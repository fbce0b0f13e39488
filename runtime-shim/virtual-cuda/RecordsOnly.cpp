// The records without the devices, for programs on devices of their own. Each has an allocator of LibTorch's,
// so tensors are known by their storages, and made by the operator that first returns a storage.
#include "preload/Implementation.h"

#include "ErrorRecords.h"
#include "Origins.h"
#include "Records.h"
#include "RunningOps.h"
#include "UncaughtExceptions.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

namespace vcuda {
namespace {

// The storages that have an origin. They are held weakly, so that no other gets the address of one that is
// known.
class KnownStorages {
public:
  /// False when it is known already.
  bool add(const c10::Storage &storage) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!known_.emplace(storage.unsafeGetStorageImpl(), storage.getWeakStorageImpl()).second)
      return false;
    if (known_.size() >= sweepAt_)
      sweep();
    return true;
  }

private:
  static constexpr size_t kFirstSweep = 4096;

  void sweep() {
    for (auto each = known_.begin(); each != known_.end();) {
      const bool gone = each->second.expired();
      if (gone)
        forgetOrigin(each->first);
      each = gone ? known_.erase(each) : std::next(each);
    }
    sweepAt_ = std::max(kFirstSweep, 2 * known_.size());
  }

  std::mutex mutex_;
  std::unordered_map<const void *, c10::weak_intrusive_ptr<c10::StorageImpl>> known_;
  size_t sweepAt_ = kFirstSweep;
};

KnownStorages &knownStorages() {
  // Leaked: operators also run while static objects are destroyed.
  static auto *known = new KnownStorages();
  return *known;
}

template <typename Use> void forEachTensor(c10::ArrayRef<c10::IValue> values, Use use) {
  for (const c10::IValue &value : values) {
    if (value.isTensor()) {
      use(value.toTensor());
    } else if (value.isTensorList()) {
      for (const at::Tensor &each : value.toTensorVector())
        use(each);
    }
  }
}

// A view has the storage of what it is a view of, and what is changed in place has its own.
bool isStorageOfInput(const RunningOp &op, const c10::Storage &storage) {
  bool found = false;
  forEachTensor(op.inputs, [&](const at::Tensor &input) {
    found |= input.defined() && input.has_storage() &&
             input.storage().unsafeGetStorageImpl() == storage.unsafeGetStorageImpl();
  });
  return found;
}

void noteResults(const RunningOp &op, c10::ArrayRef<c10::IValue> results) {
  forEachTensor(results, [&](const at::Tensor &result) {
    if (result.defined() && result.has_storage() && !isStorageOfInput(op, result.storage()) &&
        knownStorages().add(result.storage()))
      noteOrigin(originKey(*result.storage().unsafeGetStorageImpl()));
  });
  if (op.name != "aten::copy_" || op.inputs.size() < 2 || !op.inputs[1].isTensor())
    return;
  const at::Tensor &target = op.inputs[0].toTensor(), &source = op.inputs[1].toTensor();
  if (target.device() != source.device())
    noteCopy(target, source);
}

void checkFails(const char *function, const char *text) { recordIfMixedDevices(text, function); }

void blobMade(const void *made) {
  const auto &tensor = *static_cast<const at::Tensor *>(made);
  if (tensor.has_storage())
    noteForeignMemory(tensor.storage());
}

const struct Started {
  Started() {
    startRecords();
    watchOperators(&noteResults);
    watchUncaughtExceptions();
  }
} started;

} // namespace

const void *originKey(c10::StorageImpl &storage) { return &storage; }

void noteForeignMemory(const c10::Storage &storage) {
  if (originsAreKept() && knownStorages().add(storage))
    noteOrigin(storage.unsafeGetStorageImpl(), kFromBlob);
}

} // namespace vcuda

extern "C" __attribute__((visibility("default"))) const vcuda::Implementation virtual_cuda_implementation = {
    nullptr,         nullptr, nullptr, nullptr, nullptr,
    nullptr,         nullptr, nullptr, nullptr, &vcuda::checkFails,
    &vcuda::blobMade};
