#include "analyzer/driver/options/ResponseFiles.h"

#include "llvm/Support/Allocator.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Error.h"

#include <algorithm>

namespace devicetidy::driver {

bool expandResponseFiles(const std::vector<std::string> &written, std::vector<std::string> &arguments,
                         std::string &error) {
  const auto end = std::find(written.begin(), written.end(), "--");
  llvm::SmallVector<const char *> expanded;
  for (auto each = written.begin(); each != end; ++each)
    expanded.push_back(each->c_str());
  llvm::BumpPtrAllocator allocator;
  llvm::cl::ExpansionContext context(allocator, llvm::cl::TokenizeGNUCommandLine);
  if (llvm::Error problem = context.expandResponseFiles(expanded)) {
    error = "response file: " + llvm::toString(std::move(problem));
    return false;
  }
  for (const char *argument : expanded) {
    if (argument[0] == '@') { // LLVM leaves what is not there
      error = std::string("no such response file: ") + (argument + 1) +
              "; a file whose name begins with @ is written ./@...";
      return false;
    }
    arguments.emplace_back(argument);
  }
  arguments.insert(arguments.end(), end, written.end());
  return true;
}

} // namespace devicetidy::driver
