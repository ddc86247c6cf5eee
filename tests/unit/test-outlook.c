/* SPDX-License-Identifier: Apache-2.0
 * When `wait` asks systemd whether another init will come. A child process has a directory as its /, where
 * the bus is a socket of this test without an answer. tests/check/wait.sh has the messages. */
#include "kube/kube.h"
#include "report/status.h"

#include "base/paths.h"
#include "test.h"

#include <ftw.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define STATUS(verdict, boot)                                                                                    \
        "{\"bootId\": \"" boot "\", \"verdict\": \"" verdict "\", \"exit\": 33, \"code\": \"EFABRIC\", "         \
        "\"step\": \"wait-fabric:gpus\", \"text\": \"2 of 8 GPUs\"}"

static atomic_uint connections;

static int remove_one(const char *path, _unused_ const struct stat *st, _unused_ int flag, _unused_ struct FTW *ftw) {
        return remove(path);
}

/* Hangs up, so that no client waits for an answer. */
static void *serve_bus(void *listener) {
        for (int fd; (fd = accept(*(int *)listener, NULL, NULL)) >= 0; close(fd))
                connections++;
        return NULL;
}

static void begin_bus(int *listener) {
        const struct sockaddr_un bus = { .sun_family = AF_UNIX, .sun_path = "/bus" };
        pthread_t thread;
        *listener = ASSERT_OK(socket(AF_UNIX, SOCK_STREAM, 0));
        ASSERT_OK(bind(*listener, (const struct sockaddr *)&bus, sizeof bus));
        ASSERT_OK(listen(*listener, 8));
        ASSERT_EQ(pthread_create(&thread, NULL, serve_bus, listener), 0);
        ASSERT_OK(setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/bus", 1));
}

static void put(const Root *root, const char *path, const char *text) {
        ASSERT_OK(root_replace(root, path, text, strlen(text), 0644));
}

/* After this many connections to the bus. */
static bool lost_after(const Root *root, unsigned wanted) {
        _cleanup_(join_outcome_done) JoinOutcome o = {};
        connections = 0;
        bool lost = outlook_is_lost(root, &o);
        ASSERT_EQ(connections, wanted);
        ASSERT_EQ(lost, o.text != NULL);
        return lost;
}

static void look(void) {
        _cleanup_(root_freep) Root *root = NULL;
        int listener;
        ASSERT_OK(root_new("/", &root));
        ASSERT_TRUE(root_is_host(root));
        begin_bus(&listener);
        put(root, "/proc/sys/kernel/random/boot_id", "this\n");
        ASSERT_TRUE(!lost_after(root, 0));
        put(root, RUN_DIR "/status.json", STATUS("ok", "this"));
        ASSERT_TRUE(!lost_after(root, 0));
        put(root, RUN_DIR "/status.json", STATUS("failed", "that"));
        ASSERT_TRUE(!lost_after(root, 0));
        put(root, RUN_DIR "/status.json", STATUS("failed", "this"));
        ASSERT_TRUE(lost_after(root, 1));
        put(root, RUN_DIR "/status.json", "{\"bootId\": \"this\", \"verdict\": \"ok\", \"step\": \"check-pool:warm-pool\", \"text\": \"prepared\"}");
        ASSERT_TRUE(lost_after(root, 1));
        put(root, KUBELET_TURN, "");
        ASSERT_TRUE(!lost_after(root, 0));
}

TEST(wait_asks_systemd_only_if_init_failed_or_prepared_a_pool) {
        char path[] = "/tmp/test-outlook.XXXXXX";
        int status;
        ASSERT_TRUE(mkdtemp(path));
        pid_t child = ASSERT_OK(fork());
        if (child == 0) {
                alarm(60);
                if ((geteuid() != 0 && unshare(CLONE_NEWUSER) < 0) || chroot(path) < 0 || chdir("/") < 0)
                        _exit(77);
                look();
                _exit(0);
        }
        ASSERT_EQ(waitpid(child, &status, 0), child);
        nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
                SKIP("a process cannot get another / here");
        ASSERT_EQ(status, 0);
}

TEST_MAIN
