//===- LinePrefixer.h - lines with the rank in front ------------*- C++ -*-===//
//
// Splits the output of a rank into lines and puts a prefix before each.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <deque>
#include <string>
#include <string_view>

namespace devicerun {

/// Cuts a stream of bytes into lines and puts a prefix before each, so that the lines of several ranks can be
/// mixed. Without a prefix the bytes pass through as they come.
class LinePrefixer {
public:
  /// A line longer than this is cut, so that output without line ends needs no endless memory.
  static constexpr std::size_t longestLine = std::size_t{1} << 20;

  explicit LinePrefixer(std::string prefix) : prefix(std::move(prefix)) {}

  /// Appends to `out` what can be printed after these bytes.
  void feed(std::string_view bytes, std::string &out);

  /// The stream ended: a last line without a line end gets one.
  void finish(std::string &out);

private:
  void emit(std::string_view line, std::string &out) const;

  std::string prefix;
  std::string pending;
};

/// The last lines of a stream. The frames of LibTorch's backtraces ("frame #3: ...") count as one line, which
/// says how many there were: the text of the error is above them.
class LineTail {
public:
  explicit LineTail(std::size_t keep) : keep(keep) {}
  void feed(std::string_view bytes);
  /// Oldest first, without line ends; a last line without a line end counts.
  std::deque<std::string> lines() const;

private:
  void add(std::string line);

  std::size_t keep;
  std::deque<std::string> complete;
  std::string pending;
  int frames = 0; ///< of the backtrace in the last complete line
};

} // namespace devicerun
