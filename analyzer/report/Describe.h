//===- Describe.h - from findings to sentences ------------------*- C++ -*-===//
#pragma once

#include "analyzer/report/CheckInfo.h"
#include "analyzer/report/Diagnostic.h"
#include "analyzer/report/Finding.h"
#include "analyzer/report/Source.h"

namespace devicetidy {

/// Puts a finding of the check `info` into words: the message, then the steps that put each tensor where it
/// is (oldest first), the other places of the story, the calls that lead here, and the fix. `sources` lends
/// the text of the call that a fix repeats.
Diagnostic describe(const Finding &finding, const CheckInfo &info, SourceCache &sources);

/// A device as sentences name it: cpu, cuda:1, 'device'.
std::string deviceText(const std::string &written);

/// The story of an operand. A tensor that was only ever created is known by the name the operation calls it.
std::vector<Step> storyOf(const PlacedOperand &operand);

/// The sentence for one step of a witness: "'y' is created on cpu here".
std::string describeStep(const Step &step);

/// `text` with every "{name}" replaced by its value in `fields`. Unknown names stay as they are.
std::string fillTemplate(std::string_view text, const std::map<std::string, std::string> &fields);

} // namespace devicetidy
