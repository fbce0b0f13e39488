#include "analyzer/solve/library/Words.h"

#include "analyzer/solve/library/config/Words.h"
#include "analyzer/solve/library/std/Words.h"
#include "analyzer/solve/library/torch/Words.h"

namespace devicetidy {

const Library &library() {
  static const Library all{
      sequenceWords(),     mapWords(),        objectWords(),   deviceWords(), deviceValueWords(),
      tensorWords(),       legacyTypeWords(), logCheckWords(), moduleWords(), containerModuleWords(),
      registrationWords(), optionWords(),     jsonWords(),     pythonWords()};
  return all;
}

} // namespace devicetidy
