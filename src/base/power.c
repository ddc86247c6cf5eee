/* SPDX-License-Identifier: Apache-2.0
 * capabilities(7), no_new_privs and a system call filter by the kernel interfaces (seccomp(2), bpf(4)).
 * libcap and libseccomp would be two more libraries at every start of `token`. The filter is a deny list,
 * since the calls of a later libc are unknown. clone3(2), whose flags it cannot see, gets ENOSYS: then libc
 * takes clone(2). */
#include "base/power.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define NAMESPACES                                                                          \
        (CLONE_NEWCGROUP | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID |           \
         CLONE_NEWUSER | CLONE_NEWUTS)
#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#endif
#ifndef __has_feature
#define __has_feature(x) 0
#endif

void power_hide_memory(void) {
        (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

static void set_capabilities(uint64_t effective, uint64_t permitted) {
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct data[2] = {
                { .effective = (uint32_t)effective,         .permitted = (uint32_t)permitted         },
                { .effective = (uint32_t)(effective >> 32), .permitted = (uint32_t)(permitted >> 32) },
        };
        (void)syscall(SYS_capset, &header, data);
}

static uint64_t permitted(void) {
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct data[2] = {};
        if (syscall(SYS_capget, &header, data) < 0)
                return 0;
        return data[0].permitted | (uint64_t)data[1].permitted << 32;
}

void power_lower(void) {
        uint64_t all = permitted();
        set_capabilities(all & 1ULL << CAP_SETPCAP, all);
}

/* By the effective capabilities; access(2) uses the permitted ones. */
static int look(const char *path, int mode) {
        return faccessat(AT_FDCWD, path, mode, AT_EACCESS) < 0 ? errno : 0;
}

/* Absolute, since an unreadable directory may be above the working directory. */
uint64_t power_needed(const char *path, int mode) {
        _free_ char *here = *path == '/' ? NULL : getcwd(NULL, 0),
                    *place = *path == '/' ? xstrdup(path) : xasprintf("%s/%s", here ?: "", path);
        struct stat st;
        int e;
        if (mode == R_OK && stat(place, &st) == 0 && S_ISDIR(st.st_mode))
                return POWER_READ;      /* its files may belong to other users */
        if (mode == R_OK)
                return look(place, R_OK) == EACCES ? POWER_READ : 0;
        if (stat(place, &st) == 0 && !S_ISDIR(st.st_mode)) {
                if (st.st_uid != geteuid())     /* a sticky directory lets only the owner replace it */
                        return POWER_WRITE;
                *strrchr(place, '/') = 0;
        }
        while ((e = look(*place ? place : "/", W_OK | X_OK)) == ENOENT && *place)
                *strrchr(place, '/') = 0;
        return e == EACCES ? POWER_WRITE : 0;
}

#define ANSWER(error)    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))
#define ALLOW            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define LOAD(field)      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define UNLESS(test, k)  BPF_JUMP(BPF_JMP | (test) | BPF_K, (k), 0, 1)          /* skips the next statement */
#define REFUSE(call, error) UNLESS(BPF_JEQ, SYS_##call), ANSWER(error)

static void filter_calls(bool executes) {
        struct sock_filter filter[] = {
                LOAD(arch),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE, 1, 0),
                ANSWER(EPERM),
                LOAD(nr),
#ifdef __x86_64__
                UNLESS(BPF_JGE, 0x40000000), ANSWER(EPERM),     /* x32 */
#endif
                REFUSE(clone3, ENOSYS),
                REFUSE(unshare, EPERM), REFUSE(setns, EPERM),
#if !defined(__SANITIZE_ADDRESS__) && !__has_feature(address_sanitizer) /* leak detection needs it */
                REFUSE(ptrace, EPERM),
#endif
                REFUSE(process_vm_readv, EPERM), REFUSE(process_vm_writev, EPERM),
                REFUSE(pidfd_getfd, EPERM), REFUSE(bpf, EPERM), REFUSE(perf_event_open, EPERM),
                REFUSE(userfaultfd, EPERM), REFUSE(io_uring_setup, EPERM), REFUSE(add_key, EPERM),
                REFUSE(request_key, EPERM), REFUSE(keyctl, EPERM), REFUSE(personality, EPERM),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4),
                LOAD(args[0]),
                UNLESS(BPF_JSET, NAMESPACES), ANSWER(EPERM), ALLOW,
                BPF_JUMP(BPF_JMP | BPF_JA, executes ? 4 : 0, 0, 0),
                REFUSE(execve, EPERM), REFUSE(execveat, EPERM),
                ALLOW,
        };
        struct sock_fprog program = { .len = ARRAY_SIZE(filter), .filter = filter };
        (void)prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

/* execve(2) restores no capabilities outside the bounding set; nor any with no_new_privs. */
void power_drop(uint64_t keep, bool executes) {
        uint64_t left = permitted() & keep;
        for (unsigned long c = 0; c < 64; c++)
                if (!(left >> c & 1))
                        (void)prctl(PR_CAPBSET_DROP, c, 0, 0, 0);
        (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        set_capabilities(left, left);
        (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        filter_calls(executes);
}

void power_drop_one(uint64_t power) {
        uint64_t left = permitted() & ~power;
        set_capabilities(left, left);
}

bool power_is_limited(void) {
        bool all = true;
        for (unsigned long c = 0; all && prctl(PR_CAPBSET_READ, c, 0, 0, 0) >= 0; c++)
                all = permitted() >> c & 1;
        return geteuid() == 0 && (!all || prctl(PR_GET_SECCOMP, 0, 0, 0, 0) > 0);
}
