//===- Diagnosis.h - the results of device-run doctor -----------*- C++ -*-===//
//
// The lines of the report and their output as text or JSON.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace devicerun::doctor {

enum class Verdict : std::uint8_t {
  Ok,      ///< as it should be, or a fact worth knowing
  Warning, ///< works, but slower or differently than probably intended
  Problem  ///< training fails, hangs or loses its result
};

/// One line of the report.
struct Line {
  Verdict verdict = Verdict::Ok;
  std::string
      topic;        ///< "driver", "gpu", "libtorch", "nccl", "visible devices", "distributed", "deepspeed"...
  std::string id;   ///< what tools match on, such as "offload-pin-memory"; stable between releases
  std::string text; ///< what was found
  std::string next; ///< what to do about it; never empty for a warning or a problem
  std::string place; ///< "FILE:LINE" for lines about a file, else empty
};

/// The lines of a report in the order they were found.
class Diagnosis {
public:
  void ok(std::string topic, std::string id, std::string text);
  void warn(std::string topic, std::string id, std::string text, std::string next);
  void problem(std::string topic, std::string id, std::string text, std::string next);

  /// The lines added from now on carry this place.
  void setPlace(std::string text) { place = std::move(text); }

  const std::vector<Line> &lines() const { return all; }
  int count(Verdict verdict) const;

private:
  void add(Verdict verdict, std::string topic, std::string id, std::string text, std::string next);

  std::vector<Line> all;
  std::string place;
};

/// A line each, with its next step below it, and a last line that counts.
std::string toText(const Diagnosis &diagnosis);

/// {"version": 1, "verdict": "ok"|"warning"|"problem", "problems": N, "warnings": N,
///  "lines": [{"verdict", "topic", "id", "text", "next"?, "place"?}]}
std::string toJson(const Diagnosis &diagnosis);

} // namespace devicerun::doctor
