// The Python functions that a thread is in, for the records of device-run.
#include "Module.h"
#include "OwnFrames.h"

#include "CallStack.h"
#include "UncaughtExceptions.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <exception>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace vcuda::python {
namespace {

namespace py = pybind11;

// Code objects may be freed, and another one be made at their address; it has other contents then.
struct Key {
  const void *code, *file, *name;
  int firstLine, offset;
  bool operator==(const Key &other) const {
    return code == other.code && file == other.file && name == other.name && firstLine == other.firstLine &&
           offset == other.offset;
  }
};

struct KeyHash {
  size_t operator()(const Key &key) const {
    return std::hash<const void *>()(key.code) ^ (static_cast<size_t>(key.offset) * 0x9e3779b97f4a7c15U);
  }
};

// What is not the program: PyTorch, this package, Python's own library.
struct Foreign {
  std::vector<std::string> packages;
  std::string standardLibrary;

  bool holds(const std::string &file) const {
    if (file.rfind("<frozen ", 0) == 0)
      return true;
    for (const std::string &package : packages)
      if (file.rfind(package, 0) == 0)
        return true;
    return file.rfind(standardLibrary, 0) == 0 && file.find("-packages/") == std::string::npos;
  }
};

constexpr uint32_t kForeign = 0; // the number of all places that are not the program

struct Places {
  std::mutex mutex;
  Foreign foreign;
  std::unordered_map<Key, uint32_t, KeyHash> numbers;
  std::vector<std::string> texts{""};
};

Places &places() {
  // Leaked: operators also run while static objects are destroyed.
  static auto *all = new Places();
  return *all;
}

std::string textOf(PyObject *string) {
  if (PyUnicode_IS_COMPACT_ASCII(string))
    return {static_cast<const char *>(PyUnicode_DATA(string)),
            static_cast<size_t>(PyUnicode_GET_LENGTH(string))};
  py::gil_scoped_acquire lock;
  const char *text = PyUnicode_AsUTF8(string);
  if (!text)
    PyErr_Clear();
  return text ? text : "?";
}

uint32_t newNumber(Places &known, const PythonPlace &place) {
  const std::string file = textOf(place.code->co_filename);
  if (known.foreign.holds(file))
    return kForeign;
  const int line = PyCode_Addr2Line(place.code, place.offset);
  known.texts.push_back(c10::str(file, ":", line < 1 ? 1 : line, " ", textOf(place.code->co_qualname)));
  return static_cast<uint32_t>(known.texts.size() - 1);
}

uint32_t numberOf(const Key &key, const PythonPlace &place) {
  Places &known = places();
  std::lock_guard<std::mutex> lock(known.mutex);
  auto [number, isNew] = known.numbers.try_emplace(key, kForeign);
  if (isNew)
    number->second = newNumber(known, place);
  return number->second;
}

// What this thread looked up last, by a hash: call stacks are taken at each operator.
struct Recent {
  Key key;
  uint32_t number;
};
thread_local std::array<Recent, 1024> recent{};

// The thread's own frames do not change while it is in here, and hold their code: no need of Python's lock.
size_t placesOfThread(uint32_t *numbers, size_t most) {
  size_t count = 0;
  forEachPlace([&](const PythonPlace &place) {
    PyCodeObject *code = place.code;
    const Key key{code, code->co_filename, code->co_qualname, code->co_firstlineno, place.offset};
    const size_t hash = KeyHash()(key);
    Recent &entry = recent[(hash ^ hash >> 12) % recent.size()];
    if (!(entry.key == key))
      entry = {key, numberOf(key, place)};
    if (entry.number != kForeign)
      numbers[count++] = entry.number;
    return count < most;
  });
  return count;
}

std::string textOfPlace(uint32_t number) {
  Places &known = places();
  std::lock_guard<std::mutex> lock(known.mutex);
  return known.texts[number];
}

bool isFinishing() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing();
#else
  return _Py_IsFinalizing();
#endif
}

std::terminate_handler handlerBefore = nullptr;

// Python ends threads that ask for its lock while it finishes. That ends the process where the thread is in a
// function that must not throw, such as the destructor of an error in autograd's thread of a device.
// Python 3.14 lets them hang.
[[noreturn]] void hangWhilePythonFinishes() {
  while (isFinishing())
    pause();
  handlerBefore();
  std::abort();
}

} // namespace

void addFrames(py::module_ &module) {
  module.def("watch_frames", [](std::vector<std::string> packages, std::string standardLibrary) {
    places().foreign = {std::move(packages), std::move(standardLibrary)};
    setInterpreter({&placesOfThread, &textOfPlace});
  });
  module.def("record_uncaught", &recordUncaught);
  handlerBefore = std::set_terminate(&hangWhilePythonFinishes);
}

} // namespace vcuda::python
