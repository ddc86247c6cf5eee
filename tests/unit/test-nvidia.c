/* SPDX-License-Identifier: Apache-2.0
 * list-gpus, make-channel and await-imex with stand-ins for the programs of NVIDIA. */
#include "apply/device.h"
#include "programs.h"

#include <sys/sysmacros.h>

/* ---- list-gpus ---- */

#define LISTED "echo 'GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-c1ac1fb5-6a0d-0ba6-2e5a-0a1d2c8d1f00)'\n" \
               "echo '  MIG 1g.10gb     Device  0: (UUID: MIG-6b1ea5e9-d3ff-5b1c-9d9c-2f1e6e0b7f00)'\n" \
               "echo 'GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-c1ac1fb5-6a0d-0ba6-2e5a-0a1d2c8d1f01)'\n"

TEST(every_gpu_is_listed) {
        BOX(b);
        b.action.device.count = 2;
        box_program(&b, "nvidia-smi", "[ \"$*\" = -L ] || exit 9\n" LISTED);
        assert_works(&b, list_work, 0);
        ASSERT_EQ(json_integer_value(json_object_get(b.work.found, "gpus")), 2);
        ASSERT_EQ(json_integer_value(json_object_get(b.work.found, "migDevices")), 1);
        b.action.device.count = 1;      /* a table with fewer GPUs */
        assert_works(&b, list_work, 0);
        ASSERT_EQ(json_integer_value(json_object_get(b.work.found, "gpus")), 2);
}

TEST(a_gpu_that_is_not_listed_is_a_failure) {
        BOX(b);
        b.action.device.count = 3;
        box_program(&b, "nvidia-smi", LISTED "echo 'Unable to determine the device handle for gpu 0000:64:00.0: Unknown Error'");
        assert_fails(&b, list_work, CAUSE_NVIDIA_SMI, "nvidia-smi -L lists 2 of 3 GPUs and says \"Unable to determine the device handle for gpu 0000:64:00.0: Unknown Error\"; dmesg");
}

TEST(an_empty_list_of_gpus_is_a_failure) {
        BOX(b);
        box_program(&b, "nvidia-smi", "echo 'No devices found.'");
        assert_fails(&b, list_work, CAUSE_NVIDIA_SMI, "lists 0 of 1 GPUs and says \"No devices found.\"");
}

/* nvidia-smi prints errors on stdout, and its output may be long. */
TEST(a_failure_of_nvidia_smi_has_its_last_line) {
        BOX(b);
        box_program(&b, "nvidia-smi", "i=0; while [ $i -lt 500 ]; do echo \"line $i of many\"; i=$((i+1)); done; echo 'NVIDIA-SMI has failed'; exit 9");
        assert_fails(&b, list_work, CAUSE_NVIDIA_SMI, "the GPUs cannot be listed: nvidia-smi exited with status 9, last said \"NVIDIA-SMI has failed\"; dmesg");
        ASSERT_TRUE(strlen(b.work.text) < 2500);
        box_program(&b, "nvidia-smi", "echo out; echo 'line of stderr' >&2; exit 1");
        assert_fails(&b, list_work, CAUSE_NVIDIA_SMI, "last said \"line of stderr\"");
}

TEST(a_missing_nvidia_smi_is_a_failure) {
        BOX(b);
        NO_PROGRAMS();
        assert_fails(&b, list_work, CAUSE_NVIDIA_SMI, "nvidia-smi is missing; the image needs the NVIDIA driver with its programs");
}

/* ---- make-channel ---- */

#define CHANNEL "/dev/nvidia-caps-imex-channels/channel3"

static void channel_init(Box *b) {
        box_init(b);
        b->action = (Action){ .target = (char *)CHANNEL };
        put(b, "/proc/devices", "Character devices:\n  1 mem\n195 nvidia\n234 nvidia-caps-imex-channels\n235 nvidia-caps\n\nBlock devices:\n259 blkext\n");
}
#define CHANNEL_BOX(name) _cleanup_(box_done) Box name; channel_init(&name)

static void assert_channel(const Box *b, unsigned number) {
        struct stat st = look_at(b, CHANNEL);
        ASSERT_EQ(st.st_mode, S_IFCHR | 0666);
        ASSERT_EQ(major(st.st_rdev), number);
        ASSERT_EQ(minor(st.st_rdev), 3);
}

TEST(a_channel_is_made_once) {
        CHANNEL_BOX(b);
        mode_t mask = umask(077);
        assert_works(&b, channel_work, 1);
        umask(mask);
        assert_channel(&b, 234);
        assert_works(&b, channel_work, 0);
}

TEST(a_channel_with_another_number_is_replaced) {
        CHANNEL_BOX(b);
        assert_works(&b, channel_work, 1);
        put(&b, "/proc/devices", "Character devices:\n242 nvidia-caps-imex-channels\n");
        assert_works(&b, channel_work, 1);
        assert_channel(&b, 242);
        _free_ char *path = box_path(&b, CHANNEL);
        ASSERT_EQ(chmod(path, 0600), 0);
        assert_works(&b, channel_work, 1);
        assert_channel(&b, 242);
        ASSERT_EQ(unlink(path), 0);
        put(&b, CHANNEL, "a file");
        assert_works(&b, channel_work, 1);
        assert_channel(&b, 242);
}

TEST(a_driver_without_imex_channels_is_a_failure) {
        CHANNEL_BOX(b);
        put(&b, "/proc/devices", "Character devices:\n235 nvidia-caps\n\nBlock devices:\n234 nvidia-caps-imex-channels\n");
        assert_fails(&b, channel_work, CAUSE_IMEX, "/proc/devices has no nvidia-caps-imex-channels");
        ASSERT_TRUE(!is_there(&b, CHANNEL));
}

TEST(an_invalid_channel_name_is_a_failure) {
        CHANNEL_BOX(b);
        b.action.target = (char *)"/dev/nvidia-caps-imex-channels/channelx";
        assert_fails(&b, channel_work, CAUSE_IMEX, "channelx cannot be made: Invalid argument");
}

/* ---- await-imex ---- */

/* One answer after the other; the last one repeats. "!text" is a failure with that text. */
static void imex_program(Box *b, const char *answers, const char *table) {
        _free_ char *state = box_path(b, "/answers"), *script = NULL;
        put(b, "/answers", answers);
        script = xasprintf("case $* in '-c /etc/nvidia-imex/config.cfg -N -j') echo '%s'; exit;; '-c /etc/nvidia-imex/config.cfg -q') ;; *) exit 9;; esac\nread -r answer <%s\n[ $(wc -l <%s) -lt 2 ] || sed -i 1d %s\n"
                           "case $answer in !*) echo \"${answer#!}\" >&2; exit 1;; *) echo \"$answer\";; esac", table, state, state, state);
        box_program(b, "nvidia-imex-ctl", script);
}

TEST(a_ready_imex_changes_nothing) {
        BOX(b);
        imex_program(&b, "READY\n", "");
        assert_works(&b, imex_work, 0);
}

TEST(the_step_waits_until_imex_is_ready) {
        BOX(b);
        imex_program(&b, "!Failed to connect to 127.0.0.1:50005\nWAITING_FOR_PEERS\nREADY\n", "");
        assert_works(&b, imex_work, 1);
}

TEST(an_imex_that_stays_down_is_a_failure_that_names_peers) {
        BOX(b);
        imex_program(&b, "WAITING_FOR_PEERS\n", "{\"nodes\": {\"0\": {\"status\": \"READY\", \"host\": \"10.0.0.1\"}, \"1\": {\"status\": \"UNAVAILABLE\", \"host\": \"10.0.0.2\"}, "
                                                "\"2\": {\"host\": \"10.0.0.3\"}}, \"status\": \"DOWN\"}");
        b.work.deadline_usec = now_usec();
        assert_fails(&b, imex_work, CAUSE_IMEX, "its last answer was \"WAITING_FOR_PEERS\"; not ready per `nvidia-imex-ctl -N`: 10.0.0.2 (UNAVAILABLE), 10.0.0.3 (no status). Every node");
}

TEST(an_imex_that_never_answers_is_a_failure) {
        BOX(b);
        imex_program(&b, "!Failed to connect\n", "no table");
        b.work.deadline_usec = now_usec();
        assert_fails(&b, imex_work, CAUSE_IMEX, "its last answer was \"the state of IMEX cannot be read: nvidia-imex-ctl exited with status 1, last said \\\"Failed to connect\\\"\". Every node");
}

TEST(a_missing_imex_ctl_is_a_failure) {
        BOX(b);
        NO_PROGRAMS();
        assert_fails(&b, imex_work, CAUSE_IMEX, "nvidia-imex-ctl is missing; the image needs nvidia-imex");
}

TEST_MAIN
