//===- Records.h - reads the record files -----------------------*- C++ -*-===//
//
// Reads the files of JSON lines that the ranks have written. CONTRACT.md describes them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace devicerun {

/// Where a record comes from.
struct RecordSource {
  int rank = 0;
  long pid = 0;
};

using RecordReader = std::function<void(const RecordSource &, const nlohmann::json &)>;

/// Hands out the records of every `<kind>-<rank>-<pid>.jsonl` in `folder`, rank by rank, as CONTRACT.md
/// describes them. Lines that are not a JSON object are skipped, including a last line without a line end
/// among them.
void readRecords(const std::string &folder, const std::string &kind, const RecordReader &reader);

/// Where a tensor was created or last moved.
struct Made {
  std::string how; ///< "created", "moved", or empty when unknown
  std::string op;
  std::vector<std::string> stack;
  std::vector<std::vector<std::string>> copied{}; ///< where it was copied to other devices, and stayed
};

struct ErrorArgument {
  int index = 0;
  int element = -1; ///< position in a tensor list, or -1
  std::string name;
  std::string device;
  std::string shape; ///< "[8, 4]", or empty
  Made made;
};

/// A device error the library raised.
struct ErrorRecord {
  RecordSource source;
  std::string text;
  std::string errorClass;
  std::string op;
  double time = 0;                       ///< microseconds of CLOCK_MONOTONIC; 0 when unknown
  long thread = 0;                       ///< as in the trace; 0 when unknown
  std::string backwardNode;              ///< autograd node that made the call, or empty
  std::vector<std::string> forwardStack; ///< where the forward pass made that node; empty when unknown
  std::vector<ErrorArgument> arguments;
  std::vector<std::string> stack;
};

/// The tensor arguments of a record; empty without any.
std::vector<ErrorArgument> argumentsOf(const nlohmann::json &record);

/// "self", or "tensors[2]" for an element of a list.
std::string nameOf(const ErrorArgument &argument);

/// All error records of `folder`, oldest first.
std::vector<ErrorRecord> readErrors(const std::string &folder);

/// The exception that ended a process.
struct UncaughtException {
  RecordSource source;
  std::string text;
  double time = 0;                  ///< as in ErrorRecord
  std::vector<std::string> stack{}; ///< where it was thrown; empty when unknown
  long thread = 0;                  ///< as in ErrorRecord
};
std::vector<UncaughtException> readUncaught(const std::string &folder);

/// A frame seen on the call stack of an operator.
struct ReachedFrame {
  RecordSource source;
  std::string frame;
};

/// The frames of each process, in the order in which they were seen for the first time.
std::vector<ReachedFrame> readReached(const std::string &folder);

/// Members of a JSON object, with a fallback when they are missing or of another type.
std::string textOf(const nlohmann::json &object, const char *member);
double numberOf(const nlohmann::json &object, const char *member, double fallback = 0);
/// The same, cut to what fits.
int integerOf(const nlohmann::json &object, const char *member, int fallback = 0);
std::uint64_t countOf(const nlohmann::json &object, const char *member);
std::vector<std::string> textsOf(const nlohmann::json &object, const char *member);

} // namespace devicerun
