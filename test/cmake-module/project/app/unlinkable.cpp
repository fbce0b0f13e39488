#include "settings.h"
#include "version.h"

int missing();
int main() { return missing() + batchSize + (version() ? 0 : 1); }
