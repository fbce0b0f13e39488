// Stand-in for a header of Thrust.
#pragma once

#include "thrust_api.h"
