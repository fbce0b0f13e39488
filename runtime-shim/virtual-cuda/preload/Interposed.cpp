// Functions of LibTorch that are seen on their way: the dynamic linker finds those of a preloaded library
// first. They do what LibTorch's own ones do, which are looked up in LibTorch.
#include "Implementation.h"
#include "LibTorch.h"

#include <cstdint>
#include <cstdlib>
#include <exception>

#define VCUDA_PUBLIC __attribute__((visibility("default")))

namespace {

void checkFails(const char *function, const char *text) {
  if (const vcuda::Implementation *loaded = vcuda::implementation())
    loaded->checkFails(function, text);
}

using Fail = void (*)(const char *, const char *, uint32_t, const void *);

// A std::string of either ABI of libstdc++ starts with the pointer to its text.
[[noreturn]] void fail(const char *symbol, const char *function, const char *file, uint32_t line,
                       const void *string) {
  checkFails(function, *static_cast<const char *const *>(string));
  if (auto real = reinterpret_cast<Fail>(vcuda::symbolOfLibTorch(symbol)))
    real(function, file, line, string);
  std::terminate();
}

constexpr const char *kFailWithString =
    "_ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE";
constexpr const char *kFailWithText = "_ZN3c106detail14torchCheckFailEPKcS2_jS2_";

} // namespace

// c10::detail::torchCheckFail(const char *, const char *, uint32_t, const std::string &)
VCUDA_PUBLIC [[noreturn]] void
virtual_cuda_fail_with_string(const char *function, const char *file, uint32_t line,
                              const void *string) __asm__("_ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__"
                                                          "cxx1112basic_stringIcSt11char_traitsIcESaIcEEE");

void virtual_cuda_fail_with_string(const char *function, const char *file, uint32_t line,
                                   const void *string) {
  fail(kFailWithString, function, file, line, string);
}

// c10::detail::torchCheckFail(const char *, const char *, uint32_t, const char *)
VCUDA_PUBLIC [[noreturn]] void
virtual_cuda_fail_with_text(const char *function, const char *file, uint32_t line,
                            const char *text) __asm__("_ZN3c106detail14torchCheckFailEPKcS2_jS2_");

void virtual_cuda_fail_with_text(const char *function, const char *file, uint32_t line, const char *text) {
  checkFails(function, text);
  if (auto real = reinterpret_cast<Fail>(vcuda::symbolOfLibTorch(kFailWithText)))
    real(function, file, line, text);
  std::terminate();
}

namespace at {

// Enough of at::Tensor to be returned like one. It is never moved: the compiler makes it where it is
// returned.
class __attribute__((visibility("hidden"))) Tensor {
public:
  Tensor(Tensor &&);
  ~Tensor() {}

private:
  void *impl_;
};

struct VCUDA_PUBLIC TensorMaker {
  Tensor make_tensor();
};

Tensor TensorMaker::make_tensor() {
  // A member function is called like a function that takes `this` first.
  using Make = Tensor (*)(TensorMaker *);
  static const auto make =
      reinterpret_cast<Make>(vcuda::symbolOfLibTorch("_ZN2at11TensorMaker11make_tensorEv"));
  Tensor tensor = make(this);
  if (const vcuda::Implementation *loaded = vcuda::implementation())
    loaded->blobMade(&tensor);
  return tensor;
}

} // namespace at
