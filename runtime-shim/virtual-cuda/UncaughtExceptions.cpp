#include "UncaughtExceptions.h"

#include "CallStack.h"
#include "Json.h"
#include "Records.h"

#include <c10/util/Exception.h>

#include <cstdlib>
#include <exception>

namespace vcuda {
namespace {

std::terminate_handler handlerBefore = nullptr;

std::string textOf(const std::exception_ptr &exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const c10::Error &error) {
    return error.what_without_backtrace();
  } catch (const std::exception &error) {
    return error.what();
  } catch (...) {
    return "an exception that is not a std::exception";
  }
}

[[noreturn]] void record() {
  if (std::exception_ptr exception = std::current_exception())
    recordUncaught(textOf(exception));
  if (handlerBefore)
    handlerBefore();
  std::abort();
}

} // namespace

void watchUncaughtExceptions() {
  if (errorFile())
    handlerBefore = std::set_terminate(&record);
}

void recordUncaught(const std::string &text) {
  if (!errorFile())
    return;
  errorFile()->write(JsonLine()
                         .text("kind", "uncaught")
                         .text("error", text)
                         .number("ts_us", nowInMicroseconds())
                         .integer("tid", threadNumber())
                         .stack("stack", CallStack::ofCaller()) // that of the throw: nothing is unwound
                         .take());
}

} // namespace vcuda
