// Stand-in for NVTX's nvToolsExt.h. Nothing implements it: it is for reading.
#pragma once

#define NVTX_VERSION 3

typedef unsigned long long nvtxRangeId_t;

#ifdef __cplusplus
extern "C" {
#endif
int nvtxRangePushA(const char *message);
int nvtxRangePop(void);
nvtxRangeId_t nvtxRangeStartA(const char *message);
void nvtxRangeEnd(nvtxRangeId_t range);
void nvtxMarkA(const char *message);
#ifdef __cplusplus
}
#endif
#define nvtxRangePush nvtxRangePushA
#define nvtxRangeStart nvtxRangeStartA
#define nvtxMark nvtxMarkA
