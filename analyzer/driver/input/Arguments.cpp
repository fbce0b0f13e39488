#include "analyzer/driver/input/Arguments.h"

#include "analyzer/driver/input/ClangOptions.h"
#include "analyzer/driver/input/CudaHeaders.h"
#include "analyzer/driver/support/Paths.h"

#include "DeviceTidyConfig.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <memory>
#include <optional>
#include <set>
#include <utility>

namespace devicetidy::driver {

Language languageOf(std::string_view file) {
  const std::string written = llvm::sys::path::extension(file).str();
  const std::string extension = llvm::StringRef(written).lower();
  if (extension == ".cu" || extension == ".cuh")
    return Language::Cuda;
  if (extension == ".hip")
    return Language::Hip;
  // A bare ".C" is C++, a ".c" is C, which has no tensors.
  static constexpr std::string_view other[] = {".s", ".asm", ".c", ".f", ".f90", ".rc",
                                               ".m", ".ptx", ".o", ".a", ".so"};
  return llvm::is_contained(other, extension) && written != ".C" ? Language::Other : Language::Cxx;
}

namespace {

using llvm::StringRef;
using llvm::opt::Arg;
using llvm::opt::InputArgList;

/// nvcc passes what follows -Xcompiler to the host compiler, separated by commas.
bool takesHostOptions(StringRef option) { return option == "-Xcompiler" || option == "--compiler-options"; }

/// Options of gcc and nvcc whose value is the next argument. clang's table cannot know them; left to it, the
/// value would pass for an input file.
bool takesForeignValue(StringRef option) {
  // clang-format off
  static constexpr StringRef names[] = {
      "-gencode", "--generate-code", "-ccbin", "--compiler-bindir", "-Xptxas", "--ptxas-options",
      "-Xcudafe", "-Xnvlink", "--nvlink-options", "-arch-list", "--gpu-architecture", "--gpu-code",
      "-code", "-maxrregcount", "--options-file", "-optf", "--diag-suppress", "-diag-suppress",
      "--diag_suppress", "-aux-info", "-wrapper", "-dumpbase", "-dumpdir", "-auxbase", "-imultilib"};
  // clang-format on
  return llvm::is_contained(names, option);
}

/// Takes away what only gcc or nvcc understands and what clang's table would misread.
std::vector<std::string> dropForeign(const std::vector<std::string> &arguments) {
  std::vector<std::string> kept;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const StringRef argument = arguments[i];
    const auto [option, joined] = argument.split('=');
    if (takesHostOptions(option)) {
      StringRef value = joined;
      if (!argument.contains('=') && ++i < arguments.size())
        value = arguments[i];
      llvm::SmallVector<StringRef, 4> parts;
      value.split(parts, ',', -1, false);
      kept.insert(kept.end(), parts.begin(), parts.end());
    } else if (takesForeignValue(option)) {
      i += argument.contains('=') ? 0 : 1;
    } else if (argument.starts_with("@")) {
      continue; // a response file that could not be read is a module map of a build that has not run
    } else {
      kept.push_back(arguments[i]);
    }
  }
  return kept;
}

/// Options that must not reach our parse, though clang knows them. Warnings are the compiler's business; what
/// stays of them is -Wno-..., which may be all that lets a file compile. Without -fopenmp its loops are plain
/// loops.
bool isUnwanted(const Arg &arg, const InputArgList &all) {
  const llvm::opt::Option &option = arg.getOption();
  for (unsigned id : {options::OPT_UNKNOWN, options::OPT_INPUT, options::OPT__DASH_DASH, options::OPT_M_Group,
                      options::OPT_Action_Group})
    if (option.matches(id))
      return true;
  const StringRef name = option.getName();
  if (option.matches(options::OPT_W_Group))
    return !StringRef(arg.getAsString(all)).starts_with("-Wno-");
  // clang-format off
  static constexpr StringRef prefixes[] = {
      "save-temps", "flto", "fprofile-", "fcs-profile", "fplugin", "fpass-plugin", "fpch-", "fno-pch",
      "fopenmp", "fmodule-file=", "fmodule-output", "fembed-bitcode", "dump", "print-", "ftime-",
      "ferror-limit", "fcrash-", "fprebuilt-module", "fdiagnostics-", "serialize-diagnostics",
      "cuda", "no-cuda", "offload", "no-offload", "gpu", "nocuda", "nogpu", "fcuda", "fgpu", "fno-gpu"};
  // clang-format on
  // clang-format off
  static constexpr StringRef names[] = {
      "o", "v", "###", "mllvm", "pedantic-errors", "include-pch", "resource-dir", "resource-dir=", "time",
      "B", "version", "help", "ivfsoverlay", "vfsoverlay", "Wa,", "Wl,"};
  // clang-format on
  return llvm::is_contained(names, name) ||
         llvm::any_of(prefixes, [&](StringRef prefix) { return name.starts_with(prefix); });
}

/// Options of clang -cc1 with a value, passed as `-Xclang OPTION -Xclang VALUE`, that a foreign build leaves
/// behind.
bool isUnwantedForCc1(StringRef option, bool &hasValue) {
  // clang-format off
  static constexpr StringRef names[] = {
      "-include-pch", "-load", "-plugin", "-add-plugin", "-mllvm", "-fmodule-file", "-dependency-file",
      "-diagnostic-log-file", "-o"};
  // clang-format on
  hasValue = llvm::is_contained(names, option);
  return hasValue || option.starts_with("-plugin-arg") || option.starts_with("-emit-") ||
         option.starts_with("-fmodule-file=") || option == "-fno-pch-timestamp" ||
         option == "-fpch-instantiate-templates";
}

/// The language of -x `name`; nvcc says "cu", clang "cuda".
Language languageNamed(StringRef name) {
  if (name.starts_with("hip"))
    return Language::Hip;
  return name == "cu" || name.starts_with("cuda") ? Language::Cuda : Language::Cxx;
}

/// Collects the arguments of the parse.
class Adjuster {
public:
  Adjuster(const InputArgList &parsed, StringRef directory) : parsed(parsed), directory(directory) {}

  void run() {
    for (const Arg *arg : parsed)
      add(*arg);
    flushClangArguments();
  }

  std::vector<std::string> kept;
  std::vector<std::string> replaced; ///< folders that are searched last, for they hold what has stand-ins
  std::optional<Language> language;  ///< what -x says

private:
  void add(const Arg &arg) {
    const llvm::opt::Option &option = arg.getOption();
    if (option.matches(options::OPT_Xclang)) {
      clangArguments.push_back(arg.getValue());
    } else if (option.matches(options::OPT_include)) {
      addInclude(arg.getValue());
    } else if (option.matches(options::OPT_Wp_COMMA)) {
      for (StringRef value : arg.getValues()) // of the rest some write dependency files
        if (value.starts_with("-D") || value.starts_with("-U") || value.starts_with("-I"))
          kept.push_back(value.str());
    } else if (option.matches(options::OPT_arch)) {
      if (!std::exchange(hasArchitecture, true)) // a universal binary is several compilations in one command
        render(arg, kept);
    } else if (!isUnwanted(arg, parsed)) {
      const bool namesLanguage = option.matches(options::OPT_x);
      if (namesLanguage)
        language = languageNamed(arg.getValue());
      const bool isReplaced =
          option.matches(options::OPT_I) && hasStandIns(absolutePath(arg.getValue(), directory));
      if (!namesLanguage || language == Language::Cxx)
        render(arg, isReplaced ? replaced : kept);
    }
  }

  void render(const Arg &arg, std::vector<std::string> &to) {
    llvm::opt::ArgStringList text;
    arg.render(parsed, text);
    to.insert(to.end(), text.begin(), text.end());
  }

  /// Given to the driver, `-include x.h` looks for x.h.gch and x.h.pch, which another compiler may have
  /// written. Given to -cc1 it is the text of x.h.
  void addInclude(StringRef header) {
    for (const char *part : {"-Xclang", "-include", "-Xclang"})
      kept.push_back(part);
    kept.push_back(header.str());
    included.insert(absolutePath(header, directory));
  }

  /// The header that a precompiled header was made from replaces it, unless the command names it as well.
  void addTextOf(StringRef precompiled) {
    StringRef header = precompiled;
    if ((header.consume_back(".pch") || header.consume_back(".gch")) &&
        !included.count(absolutePath(header, directory)) &&
        llvm::sys::fs::exists(absolutePath(header, directory)))
      addInclude(header);
  }

  void flushClangArguments() {
    std::vector<std::string> precompiled;
    for (std::size_t i = 0; i < clangArguments.size(); ++i) {
      const StringRef option = clangArguments[i];
      bool hasValue = false;
      if (isUnwantedForCc1(option, hasValue)) {
        if (option == "-include-pch" && i + 1 < clangArguments.size())
          precompiled.push_back(clangArguments[i + 1]);
        i += hasValue ? 1 : 0;
      } else {
        if (i > 0 && clangArguments[i - 1] == "-include")
          included.insert(absolutePath(option, directory));
        kept.push_back("-Xclang");
        kept.push_back(option.str());
      }
    }
    for (const Arg *arg : parsed.filtered(options::OPT_include_pch))
      precompiled.push_back(arg->getValue());
    for (const std::string &file : precompiled)
      addTextOf(file);
  }

  const InputArgList &parsed;
  StringRef directory;
  std::vector<std::string> clangArguments;
  std::set<std::string> included;
  bool hasArchitecture = false;
};

/// What lets clang read the host's part of CUDA code without CUDA; the first header is the one that nvcc
/// includes by itself. clang would wrap CUDA's own headers around its own.
const std::vector<std::string> &cudaArguments() {
  // clang-format off
  static const std::vector<std::string> all = {
      "-x", "cuda", "--cuda-host-only", "-nocudainc", "-nocudalib", "-nobuiltininc",
      "-Xclang", "-internal-isystem", "-Xclang", DEVICE_TIDY_RESOURCE_DIR "/include",
      "-Xclang", "-include", "-Xclang", "cuda_runtime.h"};
  // clang-format on
  return all;
}

InputArgList parse(const std::vector<std::string> &arguments) {
  std::vector<const char *> pointers;
  for (const std::string &argument : arguments)
    pointers.push_back(argument.c_str());
  unsigned missingIndex = 0, missingCount = 0;
  return clangOptions().ParseArgs(pointers, missingIndex, missingCount,
                                  llvm::opt::Visibility(options::ClangOption));
}

/// The directory with gcc's own headers, or nothing. Searched last, it lends what clang does not bring, like
/// omp.h.
std::string gccHeaders() {
  std::string best;
  unsigned bestVersion = 0;
  std::error_code code;
  for (llvm::sys::fs::directory_iterator target("/usr/lib/gcc", code), end; !code && target != end;
       target.increment(code))
    for (llvm::sys::fs::directory_iterator version(target->path(), code); !code && version != end;
         version.increment(code)) {
      unsigned number = 0;
      const StringRef name = llvm::sys::path::filename(version->path());
      if (!name.split('.').first.getAsInteger(10, number) && number > bestVersion) {
        bestVersion = number;
        best = version->path() + "/include";
      }
    }
  return best;
}

std::vector<std::string> searchedDirectories(const InputArgList &parsed, StringRef directory) {
  std::vector<std::string> result;
  for (const Arg *arg :
       parsed.filtered(options::OPT_I, options::OPT_iquote, options::OPT_isystem, options::OPT_cxx_isystem,
                       options::OPT_isystem_after, options::OPT_idirafter))
    result.push_back(absolutePath(arg->getValue(), directory));
  return result;
}

} // namespace

AdjustedArguments adjustArguments(const std::vector<std::string> &arguments, const std::string &file,
                                  const std::string &directory) {
  const std::vector<std::string> own = dropForeign(arguments);
  const InputArgList parsed = parse(own);
  Adjuster adjuster(parsed, directory);
  adjuster.run();

  AdjustedArguments result;
  result.language = adjuster.language ? *adjuster.language : languageOf(file);
  const bool isCuda = result.language == Language::Cuda;
  result.arguments.push_back(arguments.empty() ? "clang++" : arguments.front());
  std::vector<std::string> &all = result.arguments;
  if (isCuda)
    all.insert(all.end(), cudaArguments().begin(), cudaArguments().end());
  // A LibTorch without CUDA has headers of c10_cuda that need CUDA's: the replacements come before them, and
  // after the user's other headers. clang cannot read those of CUDA itself without its wrapper.
  const bool needsStandIns =
      !cudaStandIns().empty() && (isCuda || !findsCuda(searchedDirectories(parsed, directory)));
  all.insert(all.end(), adjuster.kept.begin(), adjuster.kept.end());
  if (needsStandIns)
    all.push_back("-I" + cudaStandIns());
  all.insert(all.end(), adjuster.replaced.begin(), adjuster.replaced.end());
  all.push_back("-resource-dir=" DEVICE_TIDY_RESOURCE_DIR);
  static const std::string lastHeaders = gccHeaders();
  if (!lastHeaders.empty())
    all.insert(all.end(), {"-idirafter", lastHeaders});
  all.push_back("-w");
  all.push_back("-fsyntax-only");
  all.push_back(file);
  return result;
}

std::string objectFile(const std::vector<std::string> &arguments, const std::string &directory) {
  const std::vector<std::string> own = dropForeign(arguments);
  const InputArgList parsed = parse(own);
  const Arg *output = parsed.getLastArgNoClaim(options::OPT_o);
  const StringRef file = output ? output->getValue() : "";
  return file.empty() || file == "-" || file == "/dev/null" ? std::string() : absolutePath(file, directory);
}

std::vector<std::string> systemDirectories(const std::vector<std::string> &arguments,
                                           const std::string &directory) {
  const std::vector<std::string> own = dropForeign(arguments);
  const InputArgList parsed = parse(own);
  std::vector<std::string> result;
  for (const Arg *arg :
       parsed.filtered(options::OPT_isystem, options::OPT_isystem_after, options::OPT_idirafter))
    result.push_back(absolutePath(arg->getValue(), directory));
  return result;
}

} // namespace devicetidy::driver
