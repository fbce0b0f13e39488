#include "plugin.h"
#include "made.h"
int plugin() { return made(); }
