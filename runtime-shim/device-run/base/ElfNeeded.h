//===- ElfNeeded.h - the libraries a program is linked with -----*- C++ -*-===//
//
// Reads the list of libraries from an ELF file. device-run uses it to detect programs with a CUDA build
// of LibTorch.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace devicerun {

/// What the dynamic section and the program headers of an ELF file say.
struct ElfFile {
  std::string interpreter;         ///< PT_INTERP, empty for a static program
  std::vector<std::string> needed; ///< DT_NEEDED, in order
};

/// Reads a 64-bit ELF file of this machine's byte order. Nothing when it is another kind of file (a script,
/// say) or damaged; never reads beyond the file.
std::optional<ElfFile> readElf(const std::string &path);

/// A library as the dynamic loader would find it.
struct Library {
  std::string name; ///< as written in DT_NEEDED
  std::string path; ///< empty when the loader does not find it
};

/// All libraries `program` would be started with, transitively, as the loader resolves them: its interpreter
/// is run with --list, under this process's LD_LIBRARY_PATH. Empty when it cannot be run.
std::vector<Library> librariesOf(const std::string &program, const ElfFile &elf);

} // namespace devicerun
