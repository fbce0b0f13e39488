/* The functions of libnvidia-ml.so.1 that device-run doctor calls, for a machine given by environment
 * variables: DRIVER_VERSION, DRIVER_CUDA (12040), DRIVER_FAILS, and GPUS, "NAME|UUID|GiB|used GiB|8.0;...". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct memory {
  unsigned long long total, free, used;
};

static const char *entry(unsigned index) {
  const char *text = getenv("GPUS");
  while (text && *text && index-- > 0) {
    text = strchr(text, ';');
    text = text ? text + 1 : NULL;
  }
  return text && *text ? text : NULL;
}

static void part(unsigned index, int which, char *buffer, unsigned length) {
  const char *text = entry(index);
  while (which-- > 0)
    text = strchr(text, '|') + 1;
  snprintf(buffer, length, "%.*s", (int)strcspn(text, "|;"), text);
}

static unsigned index_of(void *device) { return (unsigned)((size_t)device - 1); }

int nvmlInit_v2(void) { return getenv("DRIVER_FAILS") ? 18 : 0; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int status) { return status == 18 ? "Driver/library version mismatch" : "Unknown"; }

int nvmlSystemGetDriverVersion(char *buffer, unsigned length) {
  const char *version = getenv("DRIVER_VERSION");
  snprintf(buffer, length, "%s", version ? version : "550.54.14");
  return 0;
}

int nvmlSystemGetCudaDriverVersion_v2(int *version) {
  const char *cuda = getenv("DRIVER_CUDA");
  *version = cuda ? atoi(cuda) : 12040;
  return 0;
}

int nvmlDeviceGetCount_v2(unsigned *count) {
  *count = 0;
  while (entry(*count))
    ++*count;
  return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
  *device = (void *)((size_t)index + 1);
  return 0;
}

int nvmlDeviceGetName(void *device, char *buffer, unsigned length) {
  part(index_of(device), 0, buffer, length);
  return 0;
}

int nvmlDeviceGetUUID(void *device, char *buffer, unsigned length) {
  part(index_of(device), 1, buffer, length);
  return 0;
}

int nvmlDeviceGetMemoryInfo(void *device, struct memory *memory) {
  char total[32], used[32];
  part(index_of(device), 2, total, sizeof total);
  part(index_of(device), 3, used, sizeof used);
  memory->total = strtoull(total, NULL, 10) << 30;
  memory->used = strtoull(used, NULL, 10) << 30;
  memory->free = memory->total - memory->used;
  return 0;
}

int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor) {
  char capability[32];
  part(index_of(device), 4, capability, sizeof capability);
  return sscanf(capability, "%d.%d", major, minor) == 2 ? 0 : 1;
}
