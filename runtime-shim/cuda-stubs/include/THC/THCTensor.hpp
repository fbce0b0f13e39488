// Stand-in for a header of THC.
#pragma once

#include "THC.h"
