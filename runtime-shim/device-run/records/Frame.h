//===- Frame.h - places on a call stack -------------------------*- C++ -*-===//
//
// A source line of a call stack.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace devicerun {

/// A place in a source file.
struct Frame {
  std::string file; ///< as the debug information names it; empty when there is none
  int line = 0;     ///< from 1; 0 when unknown
  std::string function;
  int lastLine = 0; ///< of several, where it is not known which one is meant; else 0 or `line`

  bool known() const { return line > 0 && !file.empty(); }
};

/// "FILE:LINE FUNCTION" or "FILE:LINE:COLUMN FUNCTION"; nothing for any other text.
std::optional<Frame> parseFrame(std::string_view text);

/// A place in an ELF file: "MODULE+0xOFFSET".
struct Address {
  std::string module;
  std::uint64_t offset = 0;
};

std::optional<Address> parseAddress(std::string_view text);

/// Whether a source file belongs to the user rather than to LibTorch, the C++ library or the system.
bool isProjectFile(std::string_view file);

/// Whether code of this ELF file can belong to the user.
bool isProjectModule(std::string_view module);

/// "file:line" with the file relative to the working directory when it lies below it.
std::string displayPlace(const Frame &frame);

class SourceLines;

/// Turns frames as the records have them into places of project code.
///
/// Addresses are looked up in debug information by addr2line (LLVM's or GNU's, whichever is installed), all
/// of a module at once: announce every frame with want() first.
class FrameResolver {
public:
  FrameResolver();
  ~FrameResolver();

  void want(const std::string &frame);

  /// The places of project code of `frame`, the innermost inlined function first. Empty for other
  /// code, and when the debug information has no line.
  const std::vector<Frame> &places(const std::string &frame);

  /// The places of a whole stack, innermost first.
  std::vector<Frame> places(const std::vector<std::string> &stack);

  /// The first of them; where the compiler does not say which line of a statement it is, the one that calls
  /// `op`.
  std::optional<Frame> innermost(const std::vector<std::string> &stack, const std::string &op);

  /// The text of a line that places() has named, without blanks at both ends.
  std::string textOf(const Frame &frame, int line);

  /// Whether a project module was asked about and no address of it had a line: it has no debug information.
  bool missedLines() const { return missed; }
  /// Whether addr2line is missing.
  bool missedTool() const { return noTool; }

private:
  void lookUpWanted();

  std::map<std::string, std::set<std::uint64_t>> wanted; ///< by module, not looked up yet
  std::map<std::string, std::vector<Frame>> known;
  bool missed = false;
  bool noTool = false;
  std::unique_ptr<SourceLines> sources;
};

} // namespace devicerun
