#include "analyzer/solve/library/Words.h"

#include "analyzer/solve/library/config/Words.h"
#include "analyzer/solve/library/std/Words.h"
#include "analyzer/solve/library/torch/Words.h"

namespace devicetidy {

const Library &library() {
  static const Library all{sequenceWords(),
                           mapWords(),
                           objectWords(),
                           textWords(),
                           pointerWords(),
                           ownershipWords(),
                           tupleWords(),
                           variantWords(),
                           callableWords(),
                           containerWords(),
                           dictWords(),
                           iteratorWords(),
                           rangeWords(),
                           archiveWords(),
                           autogradFunctionWords(),
                           dataWords(),
                           datasetWords(),
                           deviceWords(),
                           deviceValueWords(),
                           gradientWords(),
                           hostAccessWords(),
                           kernelWords(),
                           legacyTypeWords(),
                           logCheckWords(),
                           optimizerWords(),
                           tensorWords(),
                           tensorMethodWords(),
                           moduleWords(),
                           containerModuleWords(),
                           registrationWords(),
                           optionWords(),
                           jsonWords(),
                           pythonWords()};
  return all;
}

} // namespace devicetidy
