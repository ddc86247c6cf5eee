/* SPDX-License-Identifier: Apache-2.0
 * A CDI file must have the names and nodes of the NVIDIA toolkit. A new file replaces an old one. nvidia-ctk
 * and nvidia-smi run again only after a change. */
#include "doc/doc.h"
#include "nvidia/cdi.h"

#include "fake-nvml.h"

/* ---- the judge ---- */

#define HEAD "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\n"
#define DEVICE(name, nodes) "- {name: " name ", containerEdits: {deviceNodes: [" nodes "]}}\n"
#define NODE(path) "{path: " path "}, "
#define CONTROL NODE("/dev/nvidiactl") NODE("/dev/nvidia-uvm") NODE("/dev/nvidia-uvm-tools")
#define COMMON(nodes) "containerEdits: {deviceNodes: [" nodes "]}\n"

static json_t *spec_of(const char *text) {
        Blob b = { .at = { "test", 0, 1 }, .data = (char *)text, .size = strlen(text) };
        _cleanup_(documents_done) Documents documents = {};
        _cleanup_(diag_done) Diag diag = {};
        json_t *spec = NULL;
        ASSERT_OK(yaml_parse(&b, &documents, &diag));
        ASSERT_EQ(documents.n, 1);
        ASSERT_OK(yaml_to_json(documents.items[0].root, &spec));
        return spec;
}

static void faulty(const char *text, const char *why) {
        json_auto_t *spec = spec_of(text);
        ASSERT_STREQ(cdi_fault(spec) ?: "none", why);
}

TEST(files_that_no_runtime_accepts) {
        faulty("[1]", "it is not a map");
        faulty("kind: nvidia.com/gpu", "it has no cdiVersion");
        faulty("cdiVersion: 0.5.0", "its kind is not nvidia.com/gpu");
        faulty("cdiVersion: 0.5.0\nkind: example.com/gpu", "its kind is not nvidia.com/gpu");
        faulty(HEAD "devices: {}", "it has no list of devices");
        faulty(HEAD "devices: []", "none");
}

static void lacks_of(const char *text, const CdiWanted *wanted, size_t n, const char *want) {
        static const char *const nodes[] = { "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", NULL };
        json_auto_t *spec = spec_of(text);
        _strv_ char **missing = cdi_lacks(spec, wanted, n, nodes);
        _free_ char *all = strv_join(missing, "; ");
        ASSERT_STREQ(all, want);
}

static const CdiWanted two[] = { { "0", "GPU-a", "/dev/nvidia0", false }, { "1", "GPU-b", "/dev/nvidia1", false } };
static const CdiWanted mig[] = { { "0:1", "MIG-c", "/dev/nvidia0", true } };

TEST(devices_by_any_of_their_names) {
        static const char *const names[][2] = { { "\"0\"", "\"1\"" }, { "gpu0", "gpu1" }, { "GPU-a", "GPU-b" }, { "GPU-a", "gpu1" } };
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                _free_ char *text = xasprintf(HEAD "devices:\n" DEVICE("%s", NODE("/dev/nvidia0")) DEVICE("%s", NODE("/dev/nvidia1")) COMMON(CONTROL), names[i][0], names[i][1]);
                lacks_of(text, two, 2, "");
        }
        lacks_of(HEAD "devices:\n" DEVICE("\"0\"", NODE("/dev/nvidia0")) DEVICE("mig1", NODE("/dev/nvidia1")) COMMON(CONTROL), two, 2, "device 1");
        lacks_of(HEAD "devices:\n" DEVICE("\"0\"", NODE("/dev/nvidia0")) DEVICE("1", NODE("/dev/nvidia1")) DEVICE("all", NODE("/dev/nvidia1")) COMMON(CONTROL), two, 2, "device 1");
        lacks_of(HEAD "devices: []\n", two, 2, "/dev/nvidiactl; /dev/nvidia-uvm; /dev/nvidia-uvm-tools; device 0; device 1");
        /* an empty name does not match a library without UUIDs */
        lacks_of(HEAD "devices:\n" DEVICE("\"\"", NODE("/dev/nvidia0")) COMMON(CONTROL), &(CdiWanted){ "0", "", "/dev/nvidia0", false }, 1, "device 0");
}

TEST(nodes_of_devices_and_of_all) {
        lacks_of(HEAD "devices:\n" DEVICE("\"0\"", NODE("/dev/nvidia1")) COMMON(CONTROL), two, 1, "/dev/nvidia0 in device 0");
        lacks_of(HEAD "devices:\n" DEVICE("\"0\"", "") COMMON(CONTROL NODE("/dev/nvidia0")), two, 1, "");
        lacks_of(HEAD "devices:\n- {name: gpu0}\n" COMMON(NODE("/dev/nvidiactl") NODE("/dev/nvidia-uvm")), two, 1, "/dev/nvidia-uvm-tools; /dev/nvidia0 in device 0");
        /* a driver below another root: a container sees the node at its usual path */
        lacks_of(HEAD "devices:\n" DEVICE("gpu0", "{path: /dev/nvidia0, hostPath: /run/nvidia/driver/dev/nvidia0}") COMMON(CONTROL), two, 1, "");
        lacks_of(HEAD "devices:\n" DEVICE("gpu0", "{path: /dev/nvidia00, hostPath: /dev/nvidia0}") COMMON(CONTROL), two, 1, "/dev/nvidia0 in device 0");
        /* a device with an unknown number */
        lacks_of(HEAD "devices:\n" DEVICE("gpu0", "") COMMON(CONTROL), &(CdiWanted){ "0", "GPU-a", NULL, false }, 1, "");
}

TEST(mig_devices_with_their_capabilities) {
        lacks_of(HEAD "devices:\n" DEVICE("\"0:1\"", NODE("/dev/nvidia0") NODE("/dev/nvidia-caps/nvidia-cap12") NODE("/dev/nvidia-caps/nvidia-cap13")) COMMON(CONTROL), mig, 1, "");
        lacks_of(HEAD "devices:\n" DEVICE("mig0:1", NODE("/dev/nvidia0") NODE("/dev/nvidia-caps/nvidia-cap12")) COMMON(CONTROL), mig, 1, "/dev/nvidia-caps/… in device 0:1");
        lacks_of(HEAD "devices:\n" DEVICE("MIG-c", NODE("/dev/nvidia-caps/nvidia-cap12") NODE("/dev/nvidia-caps/nvidia-cap13")) COMMON(CONTROL), mig, 1, "/dev/nvidia0 in device 0:1");
        lacks_of(HEAD "devices:\n" DEVICE("gpu0:1", "") COMMON(CONTROL), mig, 1, "device 0:1");
}

/* ---- generate-cdi ---- */

#define CDI "/var/run/cdi/nvidia.yaml"
#define GENERATE "[ \"$1 $2\" = 'cdi generate' ] || exit 9\nfile=${3#--output=}\n"
#define WHOLE HEAD "devices:\n" DEVICE("\"0\"", NODE("/dev/nvidia0")) DEVICE("\"1\"", NODE("/dev/nvidia1")) COMMON(CONTROL)

static void program(const Machine *m, const char *script) {
        _free_ char *text = xasprintf("#!/bin/sh\necho ran >>%s/ran\n" GENERATE "%s\n", m->path, script);
        _free_ char *search = xasprintf("%s/usr/bin:/usr/bin:/bin", m->path);
        ASSERT_OK(root_replace(m->root, "/usr/bin/nvidia-ctk", text, strlen(text), 0755));
        setenv("PATH", search, 1);
}

/* How often the program ran since the last call. */
static size_t ran(const Machine *m) {
        _free_ char *text = NULL;
        size_t size = 0;
        (void)!root_read(m->root, "/ran", 1 << 20, &text, &size);
        ASSERT_TRUE(root_remove(m->root, "/ran") >= 0);
        return size / strlen("ran\n");
}

static void put(const Machine *m, const char *path, const char *content) {
        ASSERT_TRUE(root_replace_volatile(m->root, path, content, strlen(content), 0644) >= 0);
}

static void writes(const Machine *m, const char *text) {
        _free_ char *script = xasprintf("cp %s/wanted \"$file\"\necho 'time=\"now\" level=info msg=\"Selecting /dev/nvidia1 as /dev/nvidia1\"'\n"
                "echo 'time=\"now\" level=warning msg=\"Could not locate /dev/nvidia-uvm-tools: pattern /dev/nvidia-uvm-tools not found\"' >&2\n"
                "echo 'time=\"now\" level=warning msg=\"Could not locate /dev/nvidia-uvm: pattern /dev/nvidia-uvm not found\"' >&2", m->path);
        put(m, "/wanted", text);
        program(m, script);
}

static void assert_there(const Machine *m, const char *content) {
        _free_ char *text = NULL;
        ASSERT_OK(root_read(m->root, CDI, 1 << 20, &text, NULL));
        ASSERT_STREQ(text, content);
}

static void gpus_init(Machine *m, const char *script) {
        machine_init(m, script);
        m->action.target = (char *)CDI;
        put(m, "/sys/module/nvidia/version", "580.95.05\n");
        put(m, "/proc/driver/nvidia/gpus/0000:10:00.0/information", "Device Minor: \t 0\n");
        put(m, "/proc/driver/nvidia/gpus/0000:20:00.0/information", "Device Minor: \t 1\n");
}
#define GPUS(name, script) _cleanup_(machine_done) Machine name; gpus_init(&name, script)

static void works(Machine *m, int want) {
        machine_clear(m);
        int r = cdi_work(&m->work);
        if (r != want)
                FAIL("it is %d, want %d: %s", r, want, m->work.text ?: "");
}

TEST(a_new_file_replaces_the_old_one_if_it_differs) {
        GPUS(m, "gpus 2\n");
        writes(&m, WHOLE);
        works(&m, 1);
        assert_there(&m, WHOLE);
        writes(&m, WHOLE "# more\n");
        put(&m, "/dev/nvidia-modeset-of-old", "");
        works(&m, 1);
        assert_there(&m, WHOLE "# more\n");
        put(&m, "/dev/nvidia-modeset-of-old", "anew");
        works(&m, 0);
        ASSERT_TRUE(root_exists(m.root, "/run/nodestrap/nvidia-cdi.yaml") == 0);
}

TEST(the_file_is_made_again_after_a_change) {
        GPUS(m, "gpus 2\n");
        writes(&m, WHOLE);
        works(&m, 1);
        ASSERT_EQ(ran(&m), 1);
        works(&m, 0);
        ASSERT_EQ(ran(&m), 0);
        put(&m, CDI, WHOLE "# mine\n");
        works(&m, 1);
        ASSERT_EQ(ran(&m), 1);
        put(&m, "/sys/module/nvidia/version", "590.0.1\n");
        works(&m, 0);
        ASSERT_EQ(ran(&m), 1);
        put(&m, "/dev/nvidia-uvm", "");
        works(&m, 0);
        ASSERT_EQ(ran(&m), 1);
        put(&m, "/etc/ld.so.cache", "libraries");
        works(&m, 0);
        ASSERT_EQ(ran(&m), 1);
        machine_says(&m, "gpus 1\n");
        works(&m, 0);
        ASSERT_EQ(ran(&m), 1);
        works(&m, 0);
        ASSERT_EQ(ran(&m), 0);
        ASSERT_OK(root_remove(m.root, CDI));
        works(&m, 1);
        ASSERT_EQ(ran(&m), 1);
}

TEST(a_file_that_lacks_devices_or_nodes_is_an_error) {
        GPUS(m, "gpus 2\n");
        put(&m, CDI, "old");
        writes(&m, HEAD "devices:\n" DEVICE("\"0\"", NODE("/dev/nvidia0")) DEVICE("\"1\"", NODE("/dev/nvidia1")) COMMON(NODE("/dev/nvidiactl") NODE("/dev/nvidia-uvm-tools")));
        ASSERT_FAILS(cdi_work(&m.work), CAUSE_CDI, "the output of nvidia-ctk lacks /dev/nvidia-uvm; nvidia-ctk said \"Could not locate /dev/nvidia-uvm: pattern /dev/nvidia-uvm not found\". Containers");
        /* a message at level info is not a reason */
        writes(&m, HEAD "devices:\n" DEVICE("\"0\"", NODE("/dev/nvidia0")) DEVICE("\"1\"", "") COMMON(CONTROL));
        ASSERT_FAILS(cdi_work(&m.work), CAUSE_CDI, "the output of nvidia-ctk lacks /dev/nvidia1 in device 1. Containers");
        writes(&m, HEAD "devices:\n" DEVICE("\"0\"", NODE("/dev/nvidia0")) COMMON(CONTROL));
        ASSERT_FAILS(cdi_work(&m.work), CAUSE_CDI, "the output of nvidia-ctk lacks device 1. Containers would find no GPU, so /var/run/cdi/nvidia.yaml stays as it was");
        put(&m, "/dev/nvidia-modeset", "");
        writes(&m, HEAD "devices: []\n" COMMON(CONTROL));
        ASSERT_FAILS(cdi_work(&m.work), CAUSE_CDI, "lacks /dev/nvidia-modeset, device 0 and device 1. ");
        writes(&m, HEAD "devices: []\n");
        ASSERT_FAILS(cdi_work(&m.work), CAUSE_CDI, "lacks /dev/nvidiactl, /dev/nvidia-uvm, /dev/nvidia-uvm-tools, /dev/nvidia-modeset and 2 more; nvidia-ctk said");
        assert_there(&m, "old");
}

/* 8 GPUs with 7 MIG devices each, by three names, with all fields of a node: more than the document of a
 * user may have. */
TEST(a_file_of_many_devices) {
        GPUS(m, "gpus 2\n");
        _cleanup_(text_done) Text t = {};
        text_add(&t, HEAD COMMON(CONTROL) "devices:\n" DEVICE("\"0\"", NODE("/dev/nvidia0")) DEVICE("\"1\"", NODE("/dev/nvidia1")));
        for (unsigned i = 0; i < 8 * 7 * 3; i++) {
                text_add(&t, "- {name: more%u, containerEdits: {deviceNodes: [", i);
                for (unsigned k = 0; k < 9; k++)
                        text_add(&t, "{path: /dev/dri/card%u, hostPath: /run/nvidia/driver/dev/dri/card%u, fileMode: 438, permissions: rw}, ", k, k);
                text_add(&t, "]}}\n");
        }
        writes(&m, t.data);
        works(&m, 1);
        ASSERT_OK(root_remove(m.root, CDI));
        text_add(&t, "annotations: [");
        for (unsigned i = 0; i < 200000; i++)
                text_add(&t, "0,");
        text_add(&t, "]\n");
        writes(&m, t.data);
        ASSERT_FAILS(cdi_work(&m.work), CAUSE_CDI, "exceeds the limit of 200000 nodes");
}

TEST(mig_devices_as_the_library_lists_them) {
        GPUS(m, "gpus 2\n");
        write_file(m.state, "mig 0 1 1\ninstance 0 3 19 2 1 1\ninstance 0 5 19 3 1 0\nmig 1 0 0\n");
        writes(&m, WHOLE);
        ASSERT_FAILS(cdi_work(&m.work), CAUSE_CDI, "lacks device 0:0. ");
        writes(&m, HEAD "devices:\n" DEVICE("MIG-00000003-0000-0000-0000-000000001000", NODE("/dev/nvidia0") NODE("/dev/nvidia-caps/nvidia-cap30") NODE("/dev/nvidia-caps/nvidia-cap31"))
               DEVICE("GPU-00000000-0000-0000-0000-000000002000", NODE("/dev/nvidia1")) COMMON(CONTROL));
        works(&m, 1);
        machine_says(&m, "gpus 2\nerror nvmlDeviceGetUUID 13\n");        /* an old library */
        ASSERT_FAILS(cdi_work(&m.work), CAUSE_CDI, "lacks device 0:0 and device 1. ");
        machine_says(&m, "gpus 2\nerror nvmlDeviceGetMaxMigDeviceCount 999\n");
        ASSERT_FAILS(cdi_work(&m.work), CAUSE_NVML, "the MIG devices cannot be listed: Unknown Error (999)");
        machine_says(&m, "gpus 2\nerror nvmlInit 18\n");
        ASSERT_FAILS(cdi_work(&m.work), CAUSE_NVML, "nvmlInit_v2: Driver/library version mismatch (18)");
}

TEST(a_generator_that_fails_leaves_the_file_alone) {
        GPUS(m, "gpus 2\n");
        put(&m, CDI, "old");
        program(&m, "echo half >\"$file\"; echo 'ERRO[0000] failed to generate CDI spec' >&2; exit 1");
        ASSERT_FAILS(cdi_work(&m.work), CAUSE_CDI, "containers get no GPU: nvidia-ctk exited with status 1, last said \"ERRO[0000] failed to generate CDI spec\"; nvidia-smi -L must");
        program(&m, ": >\"$file\"");
        ASSERT_FAILS(cdi_work(&m.work), CAUSE_CDI, "cannot be used: No data available");
        program(&m, "exit 0");
        ASSERT_FAILS(cdi_work(&m.work), CAUSE_CDI, "/run/nodestrap/nvidia-cdi.yaml, written by nvidia-ctk, cannot be used");
        program(&m, "echo '[' >\"$file\"");
        ASSERT_FAILS(cdi_work(&m.work), CAUSE_CDI, "nvidia-cdi.yaml, written by nvidia-ctk, cannot be used: ");
        program(&m, "echo '# nothing' >\"$file\"");
        ASSERT_FAILS(cdi_work(&m.work), CAUSE_CDI, "nvidia-cdi.yaml, written by nvidia-ctk, cannot be used: it is not a single YAML document");
        program(&m, "echo 'kind: nvidia.com/gpu' >\"$file\"");
        ASSERT_FAILS(cdi_work(&m.work), CAUSE_CDI, "nvidia-cdi.yaml, written by nvidia-ctk, cannot be used: it has no cdiVersion");
        assert_there(&m, "old");
        ASSERT_TRUE(root_exists(m.root, "/run/nodestrap/nvidia-cdi.yaml") == 0);
}

TEST(a_missing_generator_is_a_warning) {
        SKIP_IF_VFORK_FORKS();
        GPUS(m, "gpus 2\n");
        setenv("PATH", "/nowhere", 1);
        works(&m, 0);
        ASSERT_EQ(m.work.warnings.n, 1);
        ASSERT_STREQ(m.work.warnings.items[0].code, "cdi");
        ASSERT_CONTAINS(m.work.warnings.items[0].text, "nvidia-ctk is missing (package nvidia-container-toolkit); containers get GPUs only through the legacy nvidia runtime");
        ASSERT_TRUE(root_exists(m.root, CDI) == 0);
}

/* ---- list-gpus ---- */

#define LISTS "echo 'GPU 0: NVIDIA (UUID: GPU-0)'; echo 'GPU 1: NVIDIA (UUID: GPU-1)'"

static void smi(const Machine *m, const char *script) {
        _free_ char *text = xasprintf("#!/bin/sh\necho ran >>%s/ran\n%s\n", m->path, script);
        _free_ char *search = xasprintf("%s/usr/bin:/usr/bin:/bin", m->path);
        ASSERT_OK(root_replace(m->root, "/usr/bin/nvidia-smi", text, strlen(text), 0755));
        setenv("PATH", search, 1);
}

static void lists(Machine *m, size_t runs) {
        machine_clear(m);
        ASSERT_EQ(list_work(&m->work), 0);
        ASSERT_EQ(ran(m), runs);
        ASSERT_EQ(json_integer_value(json_object_get(m->work.found, "gpus")), 2);
}

TEST(gpus_that_answered_are_not_listed_again) {
        GPUS(m, "gpus 2\n");
        m.action.device.count = 2;
        smi(&m, LISTS);
        lists(&m, 1);
        lists(&m, 0);
        put(&m, "/dev/nvidia-caps/nvidia-cap12", "");
        lists(&m, 1);
        write_file(m.state, "mig 0 1 1\ninstance 0 3 19 2 1 1\n");
        lists(&m, 1);
        lists(&m, 0);
        ASSERT_EQ(json_integer_value(json_object_get(m.work.found, "migDevices")), 1);
        machine_says(&m, "gpus 2\nerror nvmlDeviceGetPciInfo 15 1\n");     /* one is lost: nvidia-smi reports it */
        smi(&m, "echo 'GPU 0: NVIDIA (UUID: GPU-0)'; echo 'Unable to determine the device handle'");
        ASSERT_FAILS(list_work(&m.work), CAUSE_NVIDIA_SMI, "lists 1 of 2 GPUs");
        machine_says(&m, "gpus 1\n");
        ASSERT_FAILS(list_work(&m.work), CAUSE_NVIDIA_SMI, "lists 1 of 2 GPUs");
}

TEST_MAIN
