// Allocation, views, storage and pinning: everything that decides where bytes are.
#include "Allocator.h"
#include "Compat.h"
#include "Devices.h"
#include "HostMemory.h"
#include "Kernels.h"
#include "PinnedMemory.h"

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/NativeFunctions.h>
#include <ATen/native/TensorFactories.h>

#include <cstring>
#include <map>
#include <mutex>

namespace vcuda {
namespace {

const c10::DispatchKeySet kCudaKeys(c10::DispatchKey::CUDA);

c10::Device targetDevice(c10::optional<c10::Device> device, c10::optional<c10::Layout> layout,
                         c10::optional<bool> pinned) {
  TORCH_CHECK(!layout || *layout == c10::kStrided, "virtual-cuda supports only dense tensors");
  TORCH_CHECK(!pinned.value_or(false), "Only dense CPU tensors can be pinned");
  return withIndex(device.value_or(c10::Device(c10::kCUDA)));
}

at::Tensor empty(c10::IntArrayRef size, c10::optional<at::ScalarType> dtype,
                 c10::optional<c10::Layout> layout, c10::optional<c10::Device> device,
                 c10::optional<bool> pinned, c10::optional<c10::MemoryFormat> format) {
  DeviceScope scope(targetDevice(device, layout, pinned).index());
  return at::detail::empty_generic(size, deviceAllocator(), kCudaKeys, c10::dtype_or_default(dtype), format);
}

at::Tensor emptyStrided(c10::IntArrayRef size, c10::IntArrayRef stride, c10::optional<at::ScalarType> dtype,
                        c10::optional<c10::Layout> layout, c10::optional<c10::Device> device,
                        c10::optional<bool> pinned) {
  DeviceScope scope(targetDevice(device, layout, pinned).index());
  return at::detail::empty_strided_generic(size, stride, deviceAllocator(), kCudaKeys,
                                           c10::dtype_or_default(dtype));
}

// Zeros without memory, which autograd and functorch pass on where a gradient is none.
at::Tensor efficientZeros(c10::IntArrayRef size, c10::optional<at::ScalarType> dtype,
                          c10::optional<c10::Layout> layout, c10::optional<c10::Device> device,
                          c10::optional<bool> pinned) {
  const c10::Device where = targetDevice(device, layout, pinned);
  // Leaked: storages keep their allocator.
  static auto *allocators = new std::map<int, at::native::ZeroTensorAllocator>();
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  auto &allocator = allocators->try_emplace(where.index(), where).first->second;
  const c10::DispatchKeySet keys({c10::DispatchKey::CUDA, c10::DispatchKey::ZeroTensor});
  return at::detail::empty_generic(size, &allocator, keys, c10::dtype_or_default(dtype), c10::nullopt);
}

at::Tensor view(const at::Tensor &self, c10::IntArrayRef size) { return at::native::view(self, size); }

at::Tensor asStrided(const at::Tensor &self, c10::IntArrayRef size, c10::IntArrayRef stride,
                     c10::optional<int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, size, stride, offset);
}

at::Tensor reshapeAlias(const at::Tensor &self, c10::IntArrayRef size, c10::IntArrayRef stride) {
  return at::native::_reshape_alias(self, size, stride);
}

at::Tensor unfold(const at::Tensor &self, int64_t dimension, int64_t size, int64_t step) {
  return at::native::unfold(self, dimension, size, step);
}

at::Tensor viewAsReal(const at::Tensor &self) { return at::native::view_as_real(self); }

at::Tensor viewAsComplex(const at::Tensor &self) { return at::native::view_as_complex(self); }

void checkSameDevice(const at::Tensor &self, const c10::Storage &source) {
  TORCH_CHECK(self.device() == source.device(), "Attempted to set the storage of a tensor on device \"",
              self.device(), "\" to a storage on different device \"", source.device(),
              "\".  This is no longer allowed; the devices must match.");
}

at::Tensor &setStorageRange(at::Tensor &self, c10::Storage source, int64_t offset, c10::IntArrayRef size,
                            c10::IntArrayRef stride) {
  checkSameDevice(self, source);
  TORCH_CHECK(offset >= 0, "Tensor: invalid storage offset ", offset);
  at::Tensor shape = at::empty({0}, at::TensorOptions().dtype(self.dtype()).device(at::kMeta));
  if (stride.empty())
    shape.resize_(size);
  else
    shape = at::empty_strided(size, stride, shape.options());
  c10::TensorImpl *impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(source));
  impl->set_storage_offset(offset);
  // as_strided_ checks nothing about the bytes; resize_ grows the storage as CUDA's set_ does.
  size_t bytes = at::detail::computeStorageNbytes(shape.sizes(), shape.strides(), self.itemsize(),
                                                  static_cast<size_t>(offset));
  c10::StorageImpl *storage = self.storage().unsafeGetStorageImpl();
  if (bytes > storage->nbytes()) {
    DeviceScope scope(self.device().index());
    c10::DataPtr memory = deviceAllocator()->allocate(bytes);
    if (void *old = dataOf(*storage))
      std::memcpy(hostAddress(memory.get()), hostAddress(old), storage->nbytes());
    storage->set_data_ptr_noswap(std::move(memory));
    storage->set_nbytes(bytes);
  }
  impl->set_sizes_and_strides(shape.sizes(), shape.strides(), offset);
  return self;
}

at::Tensor &setStorage(at::Tensor &self, c10::Storage source) {
  int64_t count = static_cast<int64_t>(source.nbytes() / self.itemsize());
  return setStorageRange(self, std::move(source), 0, {count}, {});
}

at::Tensor &setTensor(at::Tensor &self, const at::Tensor &source) {
  if (self.is_same(source))
    return self;
  return setStorageRange(self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}

at::Tensor &setEmpty(at::Tensor &self) {
  DeviceScope scope(self.device().index());
  c10::Storage storage(c10::Storage::use_byte_size_t(), 0, deviceAllocator(), /*resizable=*/true);
  return setStorageRange(self, std::move(storage), 0, {0}, {});
}

bool isPinnedTensor(const at::Tensor &self, c10::optional<c10::Device> device) {
  TORCH_INTERNAL_ASSERT(!device || device->is_cuda());
  return self.is_cpu() && self.has_storage() && isPinned(dataOf(*self.storage().unsafeGetStorageImpl()));
}

at::Tensor pinMemory(const at::Tensor &self, c10::optional<c10::Device> device) {
  TORCH_INTERNAL_ASSERT(!device || device->is_cuda());
  TORCH_CHECK(self.is_cpu(), "cannot pin '", self.toString(), "' only dense CPU tensors can be pinned");
  size_t bytes = at::detail::computeStorageNbytes(self.sizes(), self.strides(), self.itemsize());
  c10::Storage storage(c10::Storage::use_byte_size_t(), static_cast<int64_t>(bytes), pinnedAllocator(),
                       /*resizable=*/false);
  at::Tensor pinned = at::empty({0}, self.options()).set_(storage, 0, self.sizes(), self.strides());
  return pinned.copy_(self);
}

// Work is finished when a call returns, so memory is never in use by a stream.
void recordStream(at::Tensor &, c10::Stream) {}

at::Tensor copyFromAndResize(const at::Tensor &self, const at::Tensor &target) {
  at::Tensor result = target;
  result.resize_(self.sizes());
  return result.copy_(self);
}

} // namespace

void registerMemoryKernels(torch::Library &library) {
  library.impl("empty.memory_format", TORCH_FN(empty));
  library.impl("empty_strided", TORCH_FN(emptyStrided));
  library.impl("_efficientzerotensor", TORCH_FN(efficientZeros));
  library.impl("view", TORCH_FN(view));
  library.impl("as_strided", TORCH_FN(asStrided));
  library.impl("_reshape_alias", TORCH_FN(reshapeAlias));
  library.impl("unfold", TORCH_FN(unfold));
  library.impl("view_as_real", TORCH_FN(viewAsReal));
  library.impl("view_as_complex", TORCH_FN(viewAsComplex));
  library.impl("set_.source_Storage", TORCH_FN(setStorage));
  library.impl("set_.source_Storage_storage_offset", TORCH_FN(setStorageRange));
  library.impl("set_.source_Tensor", TORCH_FN(setTensor));
  library.impl("set_", TORCH_FN(setEmpty));
  library.impl("is_pinned", TORCH_FN(isPinnedTensor));
  library.impl("_pin_memory", TORCH_FN(pinMemory));
  library.impl("record_stream", TORCH_FN(recordStream));
  library.impl("_copy_from_and_resize", TORCH_FN(copyFromAndResize));
}

} // namespace vcuda
