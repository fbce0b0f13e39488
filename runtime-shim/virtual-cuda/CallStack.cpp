#include "CallStack.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <vector>

namespace vcuda {
namespace {

struct Module {
  uintptr_t begin, end; // of its code
  uintptr_t base;       // what offsets count from
  std::string path;
  bool project;
};

// Code that is certainly not the project's, by how the name of its library starts.
const char *const kForeign[] = {"libc.so",    "libstdc++", "libc++",      "libgcc_s",    "libm.so",
                                "libpthread", "libgomp",   "libdl.so",    "ld-linux",    "linux-vdso",
                                "libasan",    "libubsan",  "libclang_rt", "libgtest.so", "libvirtual_cuda",
                                "libcu",      "libnv",     "libnccl"};

// LibTorch's own libraries. The names of a project's libraries may start the same.
const char *const kLibTorch[] = {"libtorch",          "libtorch_cpu",         "libtorch_cuda",
                                 "libtorch_cuda_cpp", "libtorch_cuda_cu",     "libtorch_cuda_linalg",
                                 "libtorch_python",   "libtorch_global_deps", "libc10",
                                 "libc10_cuda"};

bool isLibTorch(const std::string &name) {
  // What follows the name is a version: libtorch_cpu.so.2.6
  const std::string stem = name.substr(0, name.find(".so"));
  return std::find(std::begin(kLibTorch), std::end(kLibTorch), stem) != std::end(kLibTorch);
}

std::string absolutePath(const char *path) {
  const char *known = path && *path ? path : "/proc/self/exe";
  std::unique_ptr<char, decltype(&std::free)> real(realpath(known, nullptr), &std::free);
  return real ? real.get() : known;
}

std::atomic<const Interpreter *> interpreter{nullptr};

// In an interpreter also what is installed is not the project's.
bool belongsToInterpreter(const std::string &path, const char *name) {
  if (!interpreter.load(std::memory_order_relaxed))
    return false;
  for (const char *start : {"python", "libpython"})
    if (std::strncmp(name, start, std::strlen(start)) == 0)
      return true;
  for (const char *folder : {"/site-packages/", "/dist-packages/", "/lib-dynload/", "/virtual_cuda_python/"})
    if (path.find(folder) != std::string::npos)
      return true;
  return path.rfind("/lib/", 0) == 0 || path.rfind("/usr/lib/", 0) == 0;
}

bool isProject(const std::string &path, uintptr_t ownBase, uintptr_t base) {
  const char *slash = std::strrchr(path.c_str(), '/');
  const char *name = slash ? slash + 1 : path.c_str();
  return base != ownBase && !isLibTorch(name) && !belongsToInterpreter(path, name) &&
         std::none_of(std::begin(kForeign), std::end(kForeign), [&](const char *foreign) {
           return std::strncmp(name, foreign, std::strlen(foreign)) == 0;
         });
}

uintptr_t ownBase() {
  Dl_info info{};
  dladdr(reinterpret_cast<void *>(&ownBase), &info);
  return reinterpret_cast<uintptr_t>(info.dli_fbase);
}

int addModule(dl_phdr_info *object, size_t, void *result) {
  auto &modules = *static_cast<std::vector<Module> *>(result);
  static const uintptr_t own = ownBase();
  std::string path = absolutePath(object->dlpi_name);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto &segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X))
      continue;
    uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    modules.push_back(
        {begin, begin + segment.p_memsz, object->dlpi_addr, path, isProject(path, own, object->dlpi_addr)});
  }
  return 0;
}

int readLoadCount(dl_phdr_info *object, size_t, void *result) {
  *static_cast<unsigned long long *>(result) = object->dlpi_adds;
  return 1;
}

// The modules of this process by address; read again when an address is in none, as after dlopen.
class ModuleTable {
public:
  // Calls use(module) for the module of an address; false when it has none.
  template <typename Use> bool with(uintptr_t address, Use use) {
    {
      std::shared_lock<std::shared_mutex> lock(mutex_);
      if (const Module *module = find(address)) {
        use(*module);
        return true;
      }
    }
    std::unique_lock<std::shared_mutex> lock(mutex_);
    readAgain();
    const Module *module = find(address);
    if (module)
      use(*module);
    return module != nullptr;
  }

  // Whether any code may be the project's.
  bool anyProject() {
    unsigned long long loaded = 0;
    dl_iterate_phdr(&readLoadCount, &loaded);
    if (loaded != loaded_.load(std::memory_order_acquire)) {
      std::unique_lock<std::shared_mutex> lock(mutex_);
      readAgain();
    }
    return anyProject_.load(std::memory_order_relaxed);
  }

  void forget() { loaded_ = 0; }

private:
  void readAgain() {
    unsigned long long loaded = 0;
    dl_iterate_phdr(&readLoadCount, &loaded);
    // Generated code is in no module; reading the modules again would not find it.
    if (loaded == loaded_)
      return;
    modules_.clear();
    dl_iterate_phdr(&addModule, &modules_);
    std::sort(modules_.begin(), modules_.end(),
              [](const Module &a, const Module &b) { return a.begin < b.begin; });
    anyProject_ =
        std::any_of(modules_.begin(), modules_.end(), [](const Module &each) { return each.project; });
    loaded_.store(loaded, std::memory_order_release);
  }

  const Module *find(uintptr_t address) const {
    auto after = std::upper_bound(modules_.begin(), modules_.end(), address,
                                  [](uintptr_t value, const Module &module) { return value < module.begin; });
    if (after == modules_.begin())
      return nullptr;
    const Module &module = *std::prev(after);
    return address < module.end ? &module : nullptr;
  }

  std::shared_mutex mutex_;
  std::vector<Module> modules_;
  std::atomic<bool> anyProject_{false};
  std::atomic<unsigned long long> loaded_{0}; // how many modules were ever loaded when modules_ was read
};

// The demangled name of the function around an address, or "" when the symbol table does not say.
std::string functionAt(uintptr_t address) {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<void *>(address), &info) || !info.dli_sname)
    return "";
  int status = 0;
  std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status), &std::free);
  return status == 0 ? name.get() : info.dli_sname;
}

// Functions of LibTorch's headers are compiled into programs.
bool isLibraryFunction(const std::string &name) {
  for (const char *space : {"at::", "c10::", "torch::", "std::"})
    if (name.rfind(space, 0) == 0)
      return true;
  return false;
}

ModuleTable &modules() {
  static auto *table = new ModuleTable();
  return *table;
}

// Frames with this bit are places of the interpreter: no program has addresses up there.
constexpr uintptr_t kPlaceBit = uintptr_t{1} << 63;

void addNativeFrames(CallStack &stack) {
  constexpr int kMostUnwound = 160;
  void *addresses[kMostUnwound];
  int depth = backtrace(addresses, kMostUnwound);
  for (int i = 1; i < depth && stack.count < CallStack::kMostFrames; ++i) {
    // A return address is behind its call, which may be the last instruction of a line or function.
    uintptr_t address = reinterpret_cast<uintptr_t>(addresses[i]) - 1;
    modules().with(address, [&](const Module &module) {
      if (module.project)
        stack.frames[stack.count++] = address;
    });
  }
}

void addPlaces(CallStack &stack, const Interpreter &known) {
  std::array<uint32_t, CallStack::kMostFrames> numbers;
  const size_t count = known.places(numbers.data(), CallStack::kMostFrames - stack.count);
  for (size_t i = 0; i < count; ++i)
    stack.frames[stack.count++] = kPlaceBit | numbers[i];
}

} // namespace

CallStack CallStack::ofCaller() {
  CallStack stack;
  stack.count = 0;
  const Interpreter *known = interpreter.load(std::memory_order_acquire);
  if (!known || modules().anyProject())
    addNativeFrames(stack);
  if (known)
    addPlaces(stack, *known);
  return stack;
}

void setInterpreter(const Interpreter &given) {
  static Interpreter kept;
  kept = given;
  interpreter.store(&kept, std::memory_order_release);
  modules().forget();
}

void prepareCallStacks() { CallStack::ofCaller(); }

std::string frameText(uintptr_t address) {
  if (address & kPlaceBit)
    return interpreter.load()->text(static_cast<uint32_t>(address));
  std::string text;
  modules().with(address, [&](const Module &module) {
    char offset[24];
    std::snprintf(offset, sizeof(offset), "+0x%zx", static_cast<size_t>(address - module.base));
    text = module.path + offset;
  });
  return text;
}

std::string readablePlace(const CallStack &stack) {
  for (size_t i = 0; i < stack.count; ++i) {
    if (stack.frames[i] & kPlaceBit)
      return frameText(stack.frames[i]);
    std::string name = functionAt(stack.frames[i]);
    if (!isLibraryFunction(name))
      return name.empty() ? frameText(stack.frames[i]) : name + " (" + frameText(stack.frames[i]) + ")";
  }
  return stack.count ? frameText(stack.frames[0]) : "";
}

} // namespace vcuda
