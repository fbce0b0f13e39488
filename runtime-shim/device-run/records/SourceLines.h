//===- SourceLines.h - lines of source files --------------------*- C++ -*-===//
//
// Reads source files, and finds the statement that a compiler has put at a closing brace: GCC's debug
// information gives the calls in `return {f(a), g(b)};` the line where the function ends, and those in `Batch
// batch{f(a), g(b)};` the line of the brace.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "records/Frame.h"

#include <map>
#include <string>
#include <vector>

namespace devicerun {

/// The files that were asked for, read once each.
class SourceLines {
public:
  /// Without blanks at both ends; empty when the file or the line is missing.
  std::string text(const std::string &file, int line);

  /// `frame`, or the statement that was put at a closing brace.
  Frame outOfBrace(const Frame &frame);

  /// The line of `frame` that calls the operator, where exactly one of its lines does.
  Frame lineOfCall(const Frame &frame, const std::string &op);

private:
  const std::vector<std::string> &linesOf(const std::string &file);

  std::map<std::string, std::vector<std::string>> files;
};

} // namespace devicerun
