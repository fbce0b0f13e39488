//===- Answers.h - what calls have given, once they may be made again ------*- C++ -*-===//
#pragma once

#include "analyzer/solve/domain/Row.h"

namespace devicetidy {

/// A call that is made again, in the next iteration or by the next method of an object, may give something
/// else: the row forgets what it knows of such answers. What it holds of them, as in `use = wanted()`, is
/// what it was: it goes by another name from here on, with what is known of it.
void keepAnswers(Row &row);

/// Does a condition rest on the answer of a call that may be made again?
bool restsOnAnswer(Term term);

/// Is it what one call of one function has answered, which nobody gets by asking again?
bool isAnswerOfOneCall(Term term);

} // namespace devicetidy
