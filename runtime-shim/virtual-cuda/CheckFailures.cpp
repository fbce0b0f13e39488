// Sees every failed TORCH_CHECK before it is thrown. LibTorch calls these functions through the dynamic
// linker, which finds this library's first when it is preloaded, or linked before LibTorch. They do what
// LibTorch's own ones do, which are found behind them.
#include "ErrorRecords.h"

#include <c10/util/Exception.h>

#include <dlfcn.h>

#include <cstdlib>

namespace {

using Fail = void (*)(const char *, const char *, uint32_t, const std::string &);

Fail libTorchsFail() {
  static const Fail fail = reinterpret_cast<Fail>(
      dlsym(RTLD_NEXT, "_ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_stringIcSt11char_"
                       "traitsIcESaIcEEE"));
  return fail;
}

} // namespace

namespace c10 {
namespace detail {

void torchCheckFail(const char *function, const char *file, uint32_t line, const std::string &message) {
  vcuda::recordIfMixedDevices(message, function);
  if (Fail fail = libTorchsFail())
    fail(function, file, line, message);
  // This library was linked behind LibTorch and yet called: raise the error all the same.
  throw ::c10::Error({function, file, line}, message);
}

void torchCheckFail(const char *function, const char *file, uint32_t line, const char *message) {
  torchCheckFail(function, file, line, std::string(message));
}

} // namespace detail
} // namespace c10
