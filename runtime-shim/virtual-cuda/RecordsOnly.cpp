// The records without the devices, for programs on devices of their own. Each has an allocator of LibTorch's,
// so tensors are known by their storages, and made by the operator that first returns a storage.
#include "preload/Implementation.h"

#include "ErrorRecords.h"
#include "Origins.h"
#include "Records.h"
#include "RunningOps.h"
#include "UncaughtExceptions.h"

#include <algorithm>
#include <vector>

namespace vcuda {
namespace {

// The storages that were made during the operator that the program called.
thread_local std::vector<const void *> madeInCall;

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

// What is loaded or comes from other processes is no result of an operator, but becomes a tensor by this one.
bool setsStorage(const RunningOp &op) {
  return op.name == "aten::set_" && op.inputs.size() > 1 && op.inputs[1].isStorage();
}

void noteResult(const RunningOp &op, const c10::Storage &storage) {
  const void *key = originKey(*storage.unsafeGetStorageImpl());
  if ((isStorageOfInput(op, storage) && !setsStorage(op)) ||
      std::find(madeInCall.begin(), madeInCall.end(), key) != madeInCall.end())
    return;
  noteOrigin(key);
  madeInCall.push_back(key);
}

void noteResults(const RunningOp &op, c10::ArrayRef<c10::IValue> results) {
  forEachTensor(results, [&](const at::Tensor &result) {
    if (result.defined() && result.has_storage())
      noteResult(op, result.storage());
  });
  if (op.name == "aten::copy_" && op.inputs.size() > 1 && op.inputs[1].isTensor()) {
    const at::Tensor &target = op.inputs[0].toTensor(), &source = op.inputs[1].toTensor();
    if (target.device() != source.device())
      noteCopy(target, source);
  }
  if (&op == outermostOp())
    madeInCall.clear();
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

void noteForeignMemory(const c10::Storage &storage) { noteOrigin(storage.unsafeGetStorageImpl(), kFromBlob); }

} // namespace vcuda

extern "C" __attribute__((visibility("default"))) const vcuda::Implementation virtual_cuda_implementation = {
    nullptr,         nullptr, nullptr, nullptr, nullptr,
    nullptr,         nullptr, nullptr, nullptr, &vcuda::checkFails,
    &vcuda::blobMade};
