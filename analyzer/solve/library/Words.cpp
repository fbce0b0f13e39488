#include "analyzer/solve/library/Words.h"

#include "analyzer/solve/library/config/Words.h"
#include "analyzer/solve/library/python/Spread.h"
#include "analyzer/solve/library/python/Words.h"
#include "analyzer/solve/library/std/Callables.h"
#include "analyzer/solve/library/std/Iterators.h"
#include "analyzer/solve/library/std/Moves.h"
#include "analyzer/solve/library/std/Ranges.h"
#include "analyzer/solve/library/std/Words.h"
#include "analyzer/solve/library/torch/Archives.h"
#include "analyzer/solve/library/torch/Datasets.h"
#include "analyzer/solve/library/torch/Gradients.h"
#include "analyzer/solve/library/torch/HostAccess.h"
#include "analyzer/solve/library/torch/Launches.h"
#include "analyzer/solve/library/torch/Modules.h"
#include "analyzer/solve/library/torch/Words.h"

namespace devicetidy {

namespace {

constexpr Hooks hooks = {
    callValue,  meetHostFunction,      emptyMoved, movedFrom,  ordinalOf,      rangeCall,   takenBatch,
    moveModule, python::spreadOverMap, meetLaunch, meetUnseen, meetHostAccess, forgetSaved, noteUsed};

} // namespace

const Library &library() {
  static const Library all(hooks, {sequenceWords(),
                                   functionWords(),
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
                                   handleWords(),
                                   gradientWords(),
                                   hostAccessWords(),
                                   kernelWords(),
                                   launchWords(),
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
                                   pythonWords(),
                                   pythonCallWords(),
                                   pythonDefaultWords(),
                                   pythonAttributeWords(),
                                   pythonOperatorWords(),
                                   pythonComparisonWords(),
                                   pythonContainerWords(),
                                   pythonOpenWords(),
                                   pythonDeviceWords()});
  return all;
}

} // namespace devicetidy
