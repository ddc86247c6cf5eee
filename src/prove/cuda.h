/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The CUDA driver API, as far as used (https://docs.nvidia.com/cuda/cuda-driver-api/). */
#include <stddef.h>
#include <stdint.h>

enum { /* CUresult */
       CUDA_OK = 0,
       CUDA_OUT_OF_MEMORY = 2,
       CUDA_PEER_ACCESS_ALREADY_ENABLED = 704,
};
enum { /* CUdevice_attribute */
       CUDA_MULTIPROCESSORS = 16,
       CUDA_CAPABILITY_MAJOR = 75,
       CUDA_CAPABILITY_MINOR = 76,
};
#define CUDA_BLOCKING_SYNC 4    /* CU_CTX_SCHED_BLOCKING_SYNC: a wait costs no CPU */

typedef struct CudaContext *CudaContext;
typedef struct CudaModule *CudaModule;
typedef struct CudaFunction *CudaFunction;
typedef struct CudaEvent *CudaEvent;
typedef struct CudaStream *CudaStream;  /* NULL: the default stream of the current context */
typedef uint64_t CudaAddress;

#define CUDA_FUNCTIONS(X)                                                                                  \
        X(cuInit, (unsigned flags))                                                                        \
        X(cuDriverGetVersion, (int *ret))                                                                  \
        X(cuGetErrorName, (int code, const char **ret))                                                    \
        X(cuDeviceGetCount, (int *ret))                                                                    \
        X(cuDeviceGet, (int *ret, int number))                                                             \
        X(cuDeviceGetUuid_v2, (unsigned char ret[16], int device))                                         \
        X(cuDeviceGetPCIBusId, (char *ret, int size, int device))                                          \
        X(cuDeviceGetAttribute, (int *ret, int attribute, int device))                                     \
        X(cuDeviceCanAccessPeer, (int *ret, int device, int peer))                                         \
        X(cuCtxCreate_v2, (CudaContext *ret, unsigned flags, int device))                                  \
        X(cuCtxSetCurrent, (CudaContext context))                                                          \
        X(cuCtxSynchronize, (void))                                                                        \
        X(cuCtxEnablePeerAccess, (CudaContext peer, unsigned flags))                                       \
        X(cuMemGetInfo_v2, (size_t *ret_free, size_t *ret_total))                                          \
        X(cuMemAlloc_v2, (CudaAddress *ret, size_t size))                                                  \
        X(cuMemHostAlloc, (void **ret, size_t size, unsigned flags))                                       \
        X(cuMemcpyHtoD_v2, (CudaAddress to, const void *from, size_t size))                                \
        X(cuMemcpyDtoH_v2, (void *to, CudaAddress from, size_t size))                                      \
        X(cuMemcpyHtoDAsync_v2, (CudaAddress to, const void *from, size_t size, CudaStream stream))        \
        X(cuMemcpyDtoHAsync_v2, (void *to, CudaAddress from, size_t size, CudaStream stream))              \
        X(cuMemcpyPeerAsync, (CudaAddress to, CudaContext to_context, CudaAddress from,                    \
                              CudaContext from_context, size_t size, CudaStream stream))                   \
        X(cuModuleLoadDataEx, (CudaModule *ret, const void *image, unsigned n, int *options,               \
                               void **values))                                                             \
        X(cuModuleGetFunction, (CudaFunction *ret, CudaModule module, const char *name))                   \
        X(cuLaunchKernel, (CudaFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,       \
                           unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,          \
                           CudaStream stream, void **parameters, void **extra))                            \
        X(cuEventCreate, (CudaEvent *ret, unsigned flags))                                                 \
        X(cuEventRecord, (CudaEvent event, CudaStream stream))                                             \
        X(cuEventSynchronize, (CudaEvent event))                                                           \
        X(cuEventElapsedTime, (float *ret_msec, CudaEvent begin, CudaEvent end))
