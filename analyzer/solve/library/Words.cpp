#include "analyzer/solve/library/Words.h"

#include "analyzer/solve/library/std/Words.h"
#include "analyzer/solve/library/torch/Words.h"

namespace devicetidy {

const Library &library() {
  static const Library all{sequenceWords(),    mapWords(),    objectWords(),     deviceWords(),
                           deviceValueWords(), tensorWords(), legacyTypeWords(), logCheckWords()};
  return all;
}

} // namespace devicetidy
