#include "analyzer/lsp/Language.h"

#include "analyzer/facts/Language.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Path.h"

namespace devicetidy::lsp {

bool isOfCxxFamily(llvm::StringRef file, llvm::StringRef languageId) {
  static constexpr llvm::StringRef extensions[] = {".cpp", ".cc", ".cxx", ".c++", ".cp",  ".c",    ".h",
                                                   ".hpp", ".hh", ".hxx", ".h++", ".inl", ".ipp",  ".tpp",
                                                   ".txx", ".cu", ".cuh", ".hip", ".ixx", ".cppm", ".tcc"};
  // Editors do not agree on the names: "cpp" (VS Code, vim), "c++" and "c++-ts" (eglot), "cuda-cpp".
  static constexpr llvm::StringRef languages[] = {"c",    "cpp", "cc",       "objective-c", "objective-cpp",
                                                  "objc", "hip", "cuda-cpp", "objcpp",      "cuda"};
  const std::string language = languageId.lower();
  return llvm::is_contained(extensions, llvm::sys::path::extension(file).lower()) ||
         llvm::is_contained(languages, language) || llvm::StringRef(language).starts_with("c++");
}

bool isPythonDocument(llvm::StringRef file) { return isPython({file.data(), file.size()}); }

} // namespace devicetidy::lsp
