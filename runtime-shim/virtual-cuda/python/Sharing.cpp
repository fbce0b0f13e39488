// Tensors of a device in several processes: what torch.multiprocessing asks a storage for. The bytes move to
// memory that can be shared when they are shared first, as those of CPU tensors do; there they count as
// memory of no device.
#include "Module.h"
#include "TorchCompat.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

namespace vcuda::python {
namespace {

namespace py = pybind11;

// A file in memory: this, and the bytes of a storage. It has no name, so nothing is left of it when its
// processes end, however they do. As with CUDA, the process that made it must live until the others have
// attached.
struct alignas(64) Header {
  std::atomic<int64_t> expected; // processes that were told of it and have not attached yet
};

class SharedFile {
public:
  /// Takes the file.
  SharedFile(int file, size_t bytes)
      : file_(file), size_(sizeof(Header) + bytes),
        start_(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)) {
    if (start_ != MAP_FAILED)
      return;
    const int error = errno;
    close(file);
    TORCH_CHECK(false, "cannot map ", size_, " bytes of shared memory: ", std::strerror(error));
  }
  ~SharedFile() {
    munmap(start_, size_);
    close(file_);
  }
  SharedFile(const SharedFile &) = delete;
  SharedFile &operator=(const SharedFile &) = delete;

  static std::unique_ptr<SharedFile> make(size_t bytes) {
    const int file = memfd_create("virtual-gpus-shared", MFD_CLOEXEC);
    TORCH_CHECK(file >= 0 && ftruncate(file, static_cast<off_t>(sizeof(Header) + bytes)) == 0, "cannot make ",
                bytes, " bytes of shared memory: ", std::strerror(errno));
    return std::make_unique<SharedFile>(file, bytes);
  }

  /// nullptr when the process that made it has ended.
  static std::unique_ptr<SharedFile> open(const std::string &handle, size_t bytes) {
    const int file = ::open(handle.substr(0, handle.find('#')).c_str(), O_RDWR | O_CLOEXEC);
    return file < 0 ? nullptr : std::make_unique<SharedFile>(file, bytes);
  }

  /// What another process opens it by. Numbers of files come again, so each has one that does not.
  std::string handle() const { return c10::str("/proc/", getpid(), "/fd/", file_, "#", number_); }
  std::atomic<int64_t> &expected() { return static_cast<Header *>(start_)->expected; }
  void *bytes() { return static_cast<Header *>(start_) + 1; }

private:
  static int64_t nextNumber() {
    static std::atomic<int64_t> last{0};
    return ++last;
  }

  int file_;
  size_t size_;
  void *start_;
  int64_t number_ = nextNumber();
};

// Files whose storage is gone here, while another process is still to attach.
void keepUntilAttached(std::unique_ptr<SharedFile> file) {
  // Leaked: storages may be freed while static objects are destroyed.
  static auto *mutex = new std::mutex();
  static auto *kept = new std::vector<std::unique_ptr<SharedFile>>();
  std::lock_guard<std::mutex> lock(*mutex);
  kept->push_back(std::move(file));
  kept->erase(
      std::remove_if(kept->begin(), kept->end(), [](const auto &each) { return each->expected() <= 0; }),
      kept->end());
}

void leave(void *file) { keepUntilAttached(std::unique_ptr<SharedFile>(static_cast<SharedFile *>(file))); }
void leaveReceived(void *file) { delete static_cast<SharedFile *>(file); }

c10::DataPtr memoryOf(std::unique_ptr<SharedFile> file, c10::DeleterFnPtr leaving, c10::Device device) {
  void *bytes = file->bytes();
  return {bytes, file.release(), leaving, device};
}

// nullptr when the storage's memory is no such one.
SharedFile *fileOf(const c10::Storage &storage, c10::DeleterFnPtr leaving) {
  return storage.data_ptr().cast_context<SharedFile>(leaving);
}

void moveToSharedMemory(const c10::Storage &storage) {
  c10::DataPtr memory = memoryOf(SharedFile::make(storage.nbytes()), &leave, storage.device());
  static_cast<AllocatorBase *>(c10::GetAllocator(c10::kCUDA))
      ->copy_data(memory.get(), storage.data(), storage.nbytes());
  storage.unsafeGetStorageImpl()->set_data_ptr_noswap(std::move(memory));
}

// device, handle, bytes, offset, handle and offset of the counter, event, whether to wait for it
py::tuple share(const py::object &object) {
  const c10::Storage storage = storageOf(object);
  const int64_t device = storage.device().index();
  TORCH_CHECK(!fileOf(storage, &leaveReceived),
              "Attempted to send CUDA tensor received from another process; this is not currently supported. "
              "Consider cloning before sending.");
  if (storage.nbytes() == 0)
    return py::make_tuple(device, py::none(), 0, 0, py::none(), 0, py::none(), false);
  if (!fileOf(storage, &leave))
    moveToSharedMemory(storage);
  SharedFile &file = *fileOf(storage, &leave);
  ++file.expected();
  const py::bytes handle(file.handle());
  return py::make_tuple(device, handle, storage.nbytes(), 0, handle, 0, py::bytes(), false);
}

py::object attach(int64_t device, const std::string &handle, size_t bytes, const py::args &) {
  std::unique_ptr<SharedFile> file = SharedFile::open(handle, bytes);
  TORCH_CHECK(file,
              "CUDA error: invalid resource handle\nthe process that sent the tensor has ended; it must live "
              "until the tensor is received");
  --file->expected();
  c10::DataPtr memory = memoryOf(std::move(file), &leaveReceived,
                                 c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(device)));
  return objectOf(c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                                        std::move(memory), c10::GetAllocator(c10::kCUDA),
                                                        /*resizable=*/false));
}

// A process that has the memory already was told of it once more.
void release(const std::string &handle, const py::args &) {
  if (const auto file = SharedFile::open(handle, 0))
    --file->expected();
}

} // namespace

void addSharing(py::module_ &module) {
  module.def("share_storage", &share);
  module.def("attach_storage", &attach);
  module.def("release_storage", &release);
}

} // namespace vcuda::python
