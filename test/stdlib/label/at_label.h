// LibTorch's names for tensors that are only a label: the device they are on. The analyzer reads
// declarations; with DT_NATIVE the functions have bodies, and an operation whose tensors are on different
// devices throws DeviceError with the line it stands on.
#pragma once

#include <cstdint>
#include <exception>
#include <initializer_list>
#include <ostream>
#include <set>

#ifdef DT_NATIVE
#define DT_LINE , int line = __builtin_LINE(), const char *file = __builtin_FILE()
#define DT_ONLY_LINE int line = __builtin_LINE(), const char *file = __builtin_FILE()
#define DT_BODY(...) {__VA_ARGS__}
#else
#define DT_LINE
#define DT_ONLY_LINE
#define DT_BODY(...) ;
#endif

namespace c10 {
enum class DeviceType : int8_t { CPU = 0, CUDA = 1 };
constexpr DeviceType kCPU = DeviceType::CPU;
constexpr DeviceType kCUDA = DeviceType::CUDA;
using DeviceIndex = int8_t;

struct Device final {
Device(DeviceType type, DeviceIndex index = -1) DT_BODY(kind = type; number = index;) bool
operator==(const Device &other) const
    DT_BODY(return kind == other.kind && number == other.number;) bool operator!=(const Device &other) const
    DT_BODY(return !(*this == other);) DeviceType type() const DT_BODY(return kind;) DeviceIndex index() const
    DT_BODY(return number;) bool is_cuda() const DT_BODY(return kind == kCUDA;) bool is_cpu() const
    DT_BODY(return kind == kCPU;)

        private : DeviceType kind;
  DeviceIndex number;
};

struct TensorOptions {
  TensorOptions() DT_BODY() TensorOptions(Device device) DT_BODY(where = device;)
      TensorOptions(DeviceType type) DT_BODY(where = Device(type);) TensorOptions device(Device device) const
      DT_BODY(return TensorOptions(device);)
#ifdef DT_NATIVE
          Device where {
            kCPU
          };
#endif
};

template <typename T> class ArrayRef {
public:
  ArrayRef(const std::initializer_list<T> &) {}
};
using IntArrayRef = ArrayRef<int64_t>;
} // namespace c10

#ifdef DT_NATIVE
namespace label {
struct DeviceError : std::exception {};
struct UndefinedTensor : std::exception {};
inline int statement = 0;       // the line of the last mark, for operations that the library performs
inline std::set<int> passed;    // lines of operations that went well
inline std::set<int> thrown;    // lines of operations that failed
inline const char *source = ""; // the generated file
void meet(int first, int second, int line, const char *file);
} // namespace label
#endif

namespace at {
using c10::Device;
using c10::DeviceType;
using c10::IntArrayRef;
using c10::kCPU;
using c10::kCUDA;
using c10::TensorOptions;

class Tensor {
public:
#ifdef DT_NATIVE
  Tensor() = default;
  explicit Tensor(int device) : place(device) {}
  Tensor(const Tensor &other) = default;
  Tensor(Tensor &&other) noexcept : place(other.place) { other.place = -1; }
  Tensor &operator=(const Tensor &other) = default;
  Tensor &operator=(Tensor &&other) noexcept {
    int taken = other.place;
    other.place = -1;
    place = taken;
    return *this;
  }
  int place = -1; // -1: undefined, 0: cpu, 1: cuda:0, 2: cuda:1
#else
  Tensor();
  Tensor(const Tensor &other);
  Tensor(Tensor &&other) noexcept;
  Tensor &operator=(const Tensor &other);
  Tensor &operator=(Tensor &&other) noexcept;
#endif
  Tensor mm(const Tensor &mat2 DT_LINE) const
      DT_BODY(label::meet(place, mat2.place, line, file); return *this;) Tensor
      matmul(const Tensor &other DT_LINE) const
      DT_BODY(label::meet(place, other.place, line, file); return *this;) Tensor
      add(const Tensor &other DT_LINE) const
      DT_BODY(label::meet(place, other.place, line, file); return *this;) Tensor
      mul(const Tensor &other DT_LINE) const DT_BODY(label::meet(place, other.place, line, file);
                                                     return *this;) Tensor &add_(const Tensor &other DT_LINE)
          DT_BODY(label::meet(place, other.place, line, file); return *this;) Tensor
      to(Device device, bool non_blocking = false, bool copy = false) const
      DT_BODY(return Tensor(device.is_cuda() ? 1 + device.index() : 0);) Tensor cpu() const
      DT_BODY(return Tensor(0);) Tensor clone() const DT_BODY(return *this;) Tensor detach() const
      DT_BODY(return *this;) Device device() const
      DT_BODY(if (place < 0) throw label::UndefinedTensor();
              return place ? Device(kCUDA, int8_t(place - 1)) : Device(kCPU);) bool is_cuda() const
      DT_BODY(return place > 0;) bool defined() const DT_BODY(return place >= 0;) int64_t dim() const
      DT_BODY(return 2;)
#ifdef DT_NATIVE
          struct Operand { // remembers the line that converts a tensor to it
    Operand(const Tensor &tensor, int line = __builtin_LINE(), const char *file = __builtin_FILE())
        : place(tensor.place), line(line), file(file) {}
    int place, line;
    const char *file;
  };
  Tensor &operator+=(Operand other) { return meet(other); }
  Tensor &operator-=(Operand other) { return meet(other); }
  Tensor &operator*=(Operand other) { return meet(other); }
  Tensor &meet(Operand other) {
    label::meet(place, other.place, other.line, other.file);
    return *this;
  }
#else
          Tensor &operator+=(const Tensor &other);
  Tensor &operator-=(const Tensor &other);
  Tensor &operator*=(const Tensor &other);
#endif
};

#ifdef DT_NATIVE
inline Tensor operator+(Tensor a, Tensor::Operand b) { return a.meet(b); }
inline Tensor operator-(Tensor a, Tensor::Operand b) { return a.meet(b); }
inline Tensor operator*(Tensor a, Tensor::Operand b) { return a.meet(b); }
#else
Tensor operator+(const Tensor &a, const Tensor &b);
Tensor operator-(const Tensor &a, const Tensor &b);
Tensor operator*(const Tensor &a, const Tensor &b);
#endif
inline Tensor mm(const Tensor &self, const Tensor &mat2 DT_LINE)
    DT_BODY(return self.mm(mat2, line, file);) inline Tensor
    matmul(const Tensor &self, const Tensor &other DT_LINE)
        DT_BODY(return self.mm(other, line, file);) inline Tensor
    add(const Tensor &self, const Tensor &other DT_LINE) DT_BODY(return self.mm(other, line, file);)
} // namespace at

namespace torch {
using namespace at;
inline at::Tensor ones(at::IntArrayRef size, at::TensorOptions options = {})
    DT_BODY(return at::Tensor(1).to(options.where);) inline at::Tensor
    zeros(at::IntArrayRef size, at::TensorOptions options = {})
        DT_BODY(return at::Tensor(1).to(options.where);)
} // namespace torch
