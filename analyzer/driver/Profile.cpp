#include "analyzer/driver/Profile.h"

#include "analyzer/driver/WholeFile.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/TimeProfiler.h"
#include "llvm/Support/raw_ostream.h"

namespace devicetidy::driver {
namespace {

constexpr unsigned Granularity = 200; ///< microseconds; shorter work only adds to its surroundings

void startRecording() { llvm::timeTraceProfilerInitialize(Granularity, "device-tidy"); }

} // namespace

Profile::Profile(std::string name, std::string &error) : file(std::move(name)) {
  if (file.empty())
    return;
  std::error_code code; // better now than after all the work
  llvm::raw_fd_ostream probe(file, code, llvm::sys::fs::CD_OpenAlways, llvm::sys::fs::FA_Write,
                             llvm::sys::fs::OF_Append);
  if (code)
    error = "--profile: cannot write " + file + ": " + code.message();
  else
    startRecording();
}

Profile::~Profile() {
  if (isActive())
    llvm::timeTraceProfilerCleanup();
}

std::string Profile::write() {
  if (!isActive())
    return {};
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::timeTraceProfilerWrite(stream);
  return writeWholeFile(file, text.str().str());
}

bool Profile::isActive() { return llvm::timeTraceProfilerEnabled(); }

Profile::Thread::Thread(bool isProfiled) : isProfiled(isProfiled) {
  if (isProfiled)
    startRecording();
}

Profile::Thread::~Thread() {
  if (isProfiled)
    llvm::timeTraceProfilerFinishThread();
}

} // namespace devicetidy::driver
