/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The fake libcuda of tests/fakes as a struct of functions, for one script after the other in a process. */
#include "base/str.h"
#include "test.h"

#include <dlfcn.h>
#include <stdio.h>

typedef uint64_t CudaPointer;
#define CUDA_FUNCTIONS(X)                                                                      \
        X(init, cuInit, unsigned)                                                              \
        X(version, cuDriverGetVersion, int *)                                                  \
        X(count, cuDeviceGetCount, int *)                                                      \
        X(device, cuDeviceGet, int *, int)                                                     \
        X(name, cuDeviceGetName, char *, int, int)                                             \
        X(uuid, cuDeviceGetUuid_v2, unsigned char *, int)                                      \
        X(bus, cuDeviceGetPCIBusId, char *, int, int)                                          \
        X(attribute, cuDeviceGetAttribute, int *, int, int)                                    \
        X(can_reach, cuDeviceCanAccessPeer, int *, int, int)                                   \
        X(retain, cuDevicePrimaryCtxRetain, void **, int)                                      \
        X(release, cuDevicePrimaryCtxRelease_v2, int)                                          \
        X(create, cuCtxCreate_v2, void **, unsigned, int)                                      \
        X(destroy, cuCtxDestroy_v2, void *)                                                    \
        X(set_current, cuCtxSetCurrent, void *)                                                \
        X(synchronize, cuCtxSynchronize, void)                                                 \
        X(reach, cuCtxEnablePeerAccess, void *, unsigned)                                      \
        X(memory, cuMemGetInfo_v2, size_t *, size_t *)                                         \
        X(alloc, cuMemAlloc_v2, CudaPointer *, size_t)                                         \
        X(free, cuMemFree_v2, CudaPointer)                                                     \
        X(alloc_host, cuMemAllocHost_v2, void **, size_t)                                      \
        X(free_host, cuMemFreeHost, void *)                                                    \
        X(to_device, cuMemcpyHtoDAsync_v2, CudaPointer, const void *, size_t, void *)          \
        X(to_host, cuMemcpyDtoHAsync_v2, void *, CudaPointer, size_t, void *)                  \
        X(copy, cuMemcpyDtoDAsync_v2, CudaPointer, CudaPointer, size_t, void *)                \
        X(to_peer, cuMemcpyPeerAsync, CudaPointer, void *, CudaPointer, void *, size_t, void *)\
        X(set, cuMemsetD8Async, CudaPointer, unsigned char, size_t, void *)                    \
        X(load, cuModuleLoadDataEx, void **, const char *, unsigned, int *, void **)           \
        X(unload, cuModuleUnload, void *)                                                      \
        X(function, cuModuleGetFunction, void **, void *, const char *)                        \
        X(launch, cuLaunchKernel, void *, unsigned, unsigned, unsigned, unsigned, unsigned,    \
          unsigned, unsigned, void *, void **, void **)                                        \
        X(stream, cuStreamCreate, void **, unsigned)                                           \
        X(finish, cuStreamSynchronize, void *)                                                 \
        X(ask, cuStreamQuery, void *)                                                          \
        X(stream_destroy, cuStreamDestroy_v2, void *)                                          \
        X(event, cuEventCreate, void **, unsigned)                                             \
        X(record, cuEventRecord, void *, void *)                                               \
        X(event_ask, cuEventQuery, void *)                                                     \
        X(event_wait, cuEventSynchronize, void *)                                              \
        X(elapsed, cuEventElapsedTime, float *, void *, void *)                                \
        X(error_name, cuGetErrorName, unsigned, const char **)                                 \
        X(error_text, cuGetErrorString, unsigned, const char **)

#define CUDA_MEMBER(member, function, ...) unsigned (*member)(__VA_ARGS__);
#define CUDA_NAME(member, function, ...) #function,
typedef struct Cuda { CUDA_FUNCTIONS(CUDA_MEMBER) } Cuda;

/* The library after a reset, with this script, before cuInit(). */
_unused_ static const Cuda *cuda_script(const char *script) {
        static const char *const names[] = { CUDA_FUNCTIONS(CUDA_NAME) };
        static union { Cuda cuda; void *functions[ARRAY_SIZE(names)]; } loaded;
        static void (*reset)(void);
        static char path[] = "/tmp/test-cuda.XXXXXX";
        char exe[4096] = "";
        if (!reset) {
                ssize_t size = readlink("/proc/self/exe", exe, sizeof exe - 1);
                ASSERT_TRUE(size > 0);
                exe[size] = 0;                  /* valgrind reads the link twice */
                *strrchr(exe, '/') = 0;
                _free_ char *name = xasprintf("%s/../fakes/libcuda.so.1", exe);
                void *library = dlopen(name, RTLD_NOW);
                if (!library)
                        FAIL("%s", dlerror());
                for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                        if (!(loaded.functions[i] = dlsym(library, names[i])))
                                FAIL("no %s", names[i]);
                *(void **)&reset = dlsym(library, "fakeCudaReset");
                int fd = mkstemp(path);
                ASSERT_TRUE(reset && fd >= 0);
                close(fd);
        }
        reset();
        FILE *f = fopen(path, "we");
        ASSERT_TRUE(f);
        fputs(script, f);
        fclose(f);
        setenv("FAKE_CUDA", path, 1);
        int version;
        ASSERT_EQ(loaded.cuda.version(&version), 0);    /* which reads it */
        unlink(path);
        return &loaded.cuda;
}

_unused_ static const Cuda *cuda_begin(const char *script) {
        const Cuda *c = cuda_script(script);
        ASSERT_EQ(c->init(0), 0);
        return c;
}
