/* Writes the records a program under libvirtual_cuda would leave, with addresses of its own code. Its first
   argument says whether it fails with the device error ("fail"), catches it ("catch") or has none ("clean"). */
#define _GNU_SOURCE
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char module[4096];
static unsigned long base;

static int noteFirst(struct dl_phdr_info *object, size_t size, void *data) {
  (void)size, (void)data;
  base = object->dlpi_addr;
  return 1;
}

static FILE *records(const char *variable, const char *kind) {
  const char *folder = getenv(variable), *rank = getenv("RANK");
  char path[8192];
  if (!folder)
    return fopen("/dev/null", "w");
  snprintf(path, sizeof path, "%s/%s-%s-%d.jsonl", folder, kind, rank ? rank : "0", (int)getpid());
  return fopen(path, "a");
}

/* The frame of the call that is being made: the return address minus one. */
#define CALLER_OFFSET ((unsigned long)__builtin_return_address(0) - 1 - base)

__attribute__((noinline)) static unsigned long makeTensor(const char *op) {
  unsigned long at = CALLER_OFFSET;
  FILE *reached = records("VIRTUAL_GPU_REACHED", "reached");
  fprintf(reached, "{\"kind\": \"reached\", \"frame\": \"%s+%#lx\", \"op\": \"%s\"}\n", module, at, op);
  fclose(reached);
  return at;
}

__attribute__((noinline)) static unsigned long copyTensor(const char *from, const char *to, int bytes) {
  unsigned long at = CALLER_OFFSET;
  FILE *trace = records("VIRTUAL_GPU_TRACE", "trace");
  fprintf(trace, "{\"kind\": \"thread\", \"tid\": 7, \"name\": \"worker\"}\n");
  fprintf(trace, "{\"kind\": \"op\", \"op\": \"aten::mm\", \"ts_us\": 5000.5, \"dur_us\": 20, \"tid\": 7, "
                 "\"device\": \"%s\", \"args\": [{\"name\": \"self\", \"device\": \"%s\", \"shape\": [8, 4]}, "
                 "{\"name\": \"tensors\", \"element\": 1, \"device\": \"cpu\", \"shape\": [2]}], "
                 "\"stack\": [\"%s+%#lx\"]}\n", to, to, module, at);
  fprintf(trace, "{\"kind\": \"copy\", \"op\": \"aten::copy_\", \"ts_us\": 5100, \"dur_us\": 3, \"tid\": 7, "
                 "\"from\": \"%s\", \"to\": \"%s\", \"bytes\": %d, \"stack\": [\"/usr/lib/libtorch_cpu.so+0x10\", "
                 "\"%s+%#lx\"]}\n", from, to, bytes, module, at);
  fprintf(trace, "{\"kind\": \"memory\", \"device\": \"%s\", \"ts_us\": 5200, \"peak\": 2048}\n", to);
  fprintf(trace, "{\"kind\": \"op\", \"op\": \"cut off");
  fclose(trace);
  return at;
}

__attribute__((noinline)) static void failingOp(unsigned long gpu, unsigned long host) {
  unsigned long at = CALLER_OFFSET;
  FILE *errors = records("VIRTUAL_GPU_ERRORS", "errors");
  fprintf(errors,
          "{\"kind\": \"error\", \"error\": \"Expected all tensors to be on the same device, but found at least "
          "two devices, cuda:0 and cpu!\\nmore\", \"class\": \"mixed-devices\", \"op\": \"aten::mm\", "
          "\"ts_us\": 6000, \"args\": [{\"index\": 0, \"name\": \"self\", \"device\": \"cuda:0\", \"shape\": [8, 4], "
          "\"made\": {\"how\": \"moved\", \"op\": \"aten::_to_copy\", \"stack\": [\"%s+%#lx\"]}}, "
          "{\"index\": 1, \"name\": \"mat2\", \"device\": \"cpu\", \"shape\": [4, 2], "
          "\"made\": {\"how\": \"created\", \"op\": \"aten::randn\", \"stack\": [\"%s+%#lx\"]}}], "
          "\"stack\": [\"%s+%#lx\"]}\n",
          module, gpu, module, host, module, at);
  fclose(errors);
}

int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "clean";
  module[readlink("/proc/self/exe", module, sizeof module - 1)] = '\0';
  dl_iterate_phdr(noteFirst, NULL);
  unsigned long host = makeTensor("aten::randn"); /* line of the creation */
  unsigned long gpu = copyTensor("cpu", "cuda:0", 3072); /* line of the move */
  if (strcmp(mode, "clean") != 0)
    failingOp(gpu, host); /* line of the failure */
  if (argc > 2)
    makeTensor("aten::add"); /* line that is not reached */
  if (strcmp(mode, "fail") == 0)
    abort();
  return 0;
}
