// Tensors of a device in several processes: what torch.multiprocessing asks a storage for. The bytes move to
// shared memory when they are shared first, as those of CPU tensors do; there they count as memory of no
// device.
#include "Module.h"
#include "TorchCompat.h"

#include <ATen/MapAllocator.h>

#include <cstdlib>
#include <mutex>
#include <set>

namespace vcuda::python {
namespace {

namespace py = pybind11;

constexpr int kShared = at::ALLOCATOR_MAPPED_SHAREDMEM;

// Shared memory that this process has mapped. Python does not free all that lives when it ends, and the
// memory stays until all processes have left it: what is left over is unmapped when the process exits.
class Mapping {
public:
  static c10::DataPtr make(const std::string &name, int flags, size_t bytes, c10::Device device) {
    auto *mapping = new Mapping(name, flags, bytes);
    return {mapping->memory_.get(), mapping, &leave, device};
  }

  /// nullptr when the storage's memory is no such one.
  static Mapping *of(const c10::Storage &storage) { return storage.data_ptr().cast_context<Mapping>(&leave); }

  at::RefcountedMapAllocator &counter() { return *at::RefcountedMapAllocator::fromDataPtr(memory_); }

private:
  Mapping(const std::string &name, int flags, size_t bytes)
      : memory_(at::RefcountedMapAllocator::makeDataPtr(name.c_str(), kShared | flags, bytes, nullptr)) {
    static const int atExit = std::atexit(&leaveAll);
    TORCH_CHECK(atExit == 0, "no memory left");
    std::lock_guard<std::mutex> lock(mutex());
    all().insert(this);
  }

  static void leaveAll() {
    std::set<Mapping *> left;
    {
      std::lock_guard<std::mutex> lock(mutex());
      left = all();
    }
    for (Mapping *each : left)
      leave(each);
  }

  static void leave(void *context) {
    auto *mapping = static_cast<Mapping *>(context);
    {
      std::lock_guard<std::mutex> lock(mutex());
      if (!all().erase(mapping))
        return;
    }
    delete mapping;
  }

  // Leaked: storages may be freed while static objects are destroyed.
  static std::set<Mapping *> &all() {
    static auto *mappings = new std::set<Mapping *>();
    return *mappings;
  }

  static std::mutex &mutex() {
    static auto *instance = new std::mutex();
    return *instance;
  }

  c10::DataPtr memory_;
};

void moveToSharedMemory(const c10::Storage &storage) {
  c10::DataPtr memory = Mapping::make(at::NewProcessWideShmHandle(), at::ALLOCATOR_MAPPED_EXCLUSIVE,
                                      storage.nbytes(), storage.device());
  static_cast<AllocatorBase *>(c10::GetAllocator(c10::kCUDA))
      ->copy_data(memory.get(), storage.data(), storage.nbytes());
  storage.unsafeGetStorageImpl()->set_data_ptr_noswap(std::move(memory));
}

// device, handle, bytes, offset, handle and offset of the counter, event, whether to wait for it
py::tuple share(const py::object &object) {
  const c10::Storage storage = storageOf(object);
  const int64_t device = storage.device().index();
  if (storage.nbytes() == 0)
    return py::make_tuple(device, py::none(), 0, 0, py::none(), 0, py::none(), false);
  if (!Mapping::of(storage))
    moveToSharedMemory(storage);
  at::RefcountedMapAllocator &counter = Mapping::of(storage)->counter();
  counter.incref(); // for the process that gets it
  const py::bytes handle(counter.filename());
  return py::make_tuple(device, handle, storage.nbytes(), 0, handle, 0, py::bytes(), false);
}

py::object attach(int64_t device, const std::string &handle, size_t bytes, const py::args &) {
  c10::DataPtr memory = Mapping::make(handle, at::ALLOCATOR_MAPPED_NOCREATE, bytes,
                                      c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(device)));
  auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                                       std::move(memory), c10::GetAllocator(c10::kCUDA),
                                                       /*resizable=*/false);
  Mapping::of(storage)->counter().decref(); // the sender's count for this process
  return objectOf(std::move(storage));
}

// A process that has the memory already got it once more.
void release(const std::string &handle, const py::args &) {
  const int flags = at::ALLOCATOR_MAPPED_NOCREATE;
  c10::DataPtr memory = at::RefcountedMapAllocator::makeDataPtr(handle.c_str(), kShared | flags, 1, nullptr);
  at::RefcountedMapAllocator::fromDataPtr(memory)->decref();
}

} // namespace

void addSharing(py::module_ &module) {
  module.def("share_storage", &share);
  module.def("attach_storage", &attach);
  module.def("release_storage", &release);
}

} // namespace vcuda::python
