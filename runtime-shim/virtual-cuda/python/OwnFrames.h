//===- OwnFrames.h - the frames of Python's interpreter ---------*- C++ -*-===//
//
// Walks the Python functions of the calling thread. Python has no public way to do so without its lock, which
// operators do not hold; what differs between its releases is here.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <Python.h>

#if PY_VERSION_HEX < 0x030B0000 || PY_VERSION_HEX >= 0x030E0000
#error "the frames of this release of Python are not known"
#endif

extern "C" {
#define Py_BUILD_CORE
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
}

namespace vcuda::python {

struct PythonPlace {
  PyCodeObject *code;
  int offset; ///< of the instruction, in bytes
};

inline PyCodeObject *codeOf(const _PyInterpreterFrame *frame) {
#if PY_VERSION_HEX >= 0x030D0000
  PyObject *executable = frame->f_executable;
  return executable && PyCode_Check(executable) ? reinterpret_cast<PyCodeObject *>(executable) : nullptr;
#else
  return frame->f_code;
#endif
}

/// Is it none of a function, but where C code has called the interpreter?
inline bool isOfInterpreter(const _PyInterpreterFrame *frame) {
#if PY_VERSION_HEX >= 0x030C0000
  return frame->owner == FRAME_OWNED_BY_CSTACK;
#else
  (void)frame;
  return false;
#endif
}

inline const _PyInterpreterFrame *innermostFrame(PyThreadState *thread) {
#if PY_VERSION_HEX >= 0x030D0000
  return thread->current_frame;
#else
  return thread->cframe->current_frame;
#endif
}

/// Calls use(place) from the innermost function outwards, until it returns false.
template <typename Use> void forEachPlace(Use use) {
  PyThreadState *thread = PyGILState_GetThisThreadState();
  if (!thread)
    return; // a thread that Python does not know
  for (const _PyInterpreterFrame *frame = innermostFrame(thread); frame; frame = frame->previous) {
    PyCodeObject *code = isOfInterpreter(frame) ? nullptr : codeOf(frame);
    if (!code || !PyCode_Check(code))
      continue;
#if PY_VERSION_HEX >= 0x030D0000
    const _Py_CODEUNIT *instruction = frame->instr_ptr;
#else
    const _Py_CODEUNIT *instruction = frame->prev_instr;
#endif
    const auto offset =
        static_cast<int>(reinterpret_cast<const char *>(instruction) - code->co_code_adaptive);
    if (offset >= 0 && !use(PythonPlace{code, offset}))
      return;
  }
}

} // namespace vcuda::python
