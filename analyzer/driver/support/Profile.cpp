#include "analyzer/driver/support/Profile.h"

#include "analyzer/driver/support/WholeFile.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/TimeProfiler.h"
#include "llvm/Support/raw_ostream.h"

namespace devicetidy::driver {
namespace {

/// `shortest`: microseconds; what is shorter only counts in the totals.
void startRecording(unsigned shortest) { llvm::timeTraceProfilerInitialize(shortest, "device-tidy"); }

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
    startRecording(0);
}

Profile::~Profile() {
  if (!isActive())
    return;
  llvm::timeTraceProfilerCleanup();
  llvm::sys::fs::file_status status;
  if (!isWritten && !llvm::sys::fs::status(file, status) && is_regular_file(status) && status.getSize() == 0)
    llvm::sys::fs::remove(file); // an empty file is not a valid trace
}

std::string Profile::write() {
  if (!isActive())
    return {};
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::timeTraceProfilerWrite(stream);
  isWritten = true;
  return writeWholeFile(file, text.str().str());
}

bool Profile::isActive() { return llvm::timeTraceProfilerEnabled(); }

Profile::Thread::Thread(bool isProfiled, bool runsClang) : isProfiled(isProfiled) {
  constexpr unsigned shortestOfClang = 200; // it marks every declaration
  if (isProfiled)
    startRecording(runsClang ? shortestOfClang : 0);
}

Profile::Thread::~Thread() {
  if (isProfiled)
    llvm::timeTraceProfilerFinishThread();
}

} // namespace devicetidy::driver
