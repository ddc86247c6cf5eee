/* SPDX-License-Identifier: Apache-2.0 */
/* The needs of plans in an image, and the messages about findings. */
#include "sample.h"
#include "doctor/checks.h"
#include "host/tables.h"

#include <elf.h>
#include <sys/stat.h>

typedef struct Box { Sample s; Needs needs; } Box;

static void box_done(Box *b) {
        needs_done(&b->needs);
        b->s.host = (Host){};
        sample_done(&b->s);
}
#define BOX(name) _cleanup_(box_done) Box name = { .s = sample_new() }

/* The plan of an image for a machine of this type, by the tables. */
static void add_type(Box *b, const char *type, unsigned stores) {
        _cleanup_(root_freep) Root *root = NULL;
        HostOptions options = { .instance_type = type, .kubelet_version = "1.34.2", .containerd_version = "2.1.5",
                                .stores = stores };
        Host *host = NULL;
        ASSERT_OK(root_new("/", &root));
        ASSERT_OK(host_detect(root, &b->s.config, &options, &host, &b->s.diag));
        b->s.host = *host;
        needs_of_plan(sample_plan(&b->s), type, &b->needs);
        host_free(host);
}

static const Need *find(const Box *b, NeedKind kind, const char *name) {
        const Need *n = needs_find(&b->needs, kind, name);
        if (!n)
                FAIL("no %s %s is needed", need_kind_to_string(kind), name);
        return n;
}
#define LACKS(b, kind, name) ASSERT_TRUE(!needs_find(&(b).needs, kind, name))

TEST(needs_of_a_plain_node) {
        BOX(b);
        add_type(&b, "m6i.4xlarge", 0);
        ASSERT_TRUE(!find(&b, NEED_PROGRAM, "/usr/bin/nodestrap")->optional);
        ASSERT_TRUE(!find(&b, NEED_PROGRAM, "/usr/bin/nodestrap")->step);
        ASSERT_TRUE(!find(&b, NEED_PROGRAM, "kubelet")->optional);
        ASSERT_STREQ(find(&b, NEED_UNIT, "kubelet.service")->step, "start-unit:kubelet.service");
        ASSERT_EQ(find(&b, NEED_UNIT, "containerd.service")->cause, CAUSE_UNIT_MISSING);
        ASSERT_EQ(find(&b, NEED_PROGRAM, "/usr/sbin/runc")->cause, CAUSE_NOT_READY);
        ASSERT_TRUE(find(&b, NEED_FILE, SANDBOX_ARCHIVE)->optional);
        ASSERT_TRUE(find(&b, NEED_PROGRAM, ECR_PROVIDER)->optional);
        ASSERT_EQ(find(&b, NEED_MODULE, "overlay")->cause, CAUSE_UNIT);
        ASSERT_EQ(find(&b, NEED_FEATURE, "CONFIG_NET_NS")->cause, CAUSE_NOT_READY);
        ASSERT_EQ(find(&b, NEED_FEATURE, "CONFIG_CGROUP_BPF")->cause, CAUSE_NOT_READY);
        ASSERT_STREQ(find(&b, NEED_FEATURE, "CONFIG_CPUSETS")->step, "start-unit:kubelet.service");
        find(&b, NEED_DIRECTORY, "/etc/containerd");
        ASSERT_STREQ(find(&b, NEED_DIRECTORY, "/var/lib/kubelet/device-plugins")->step, "start-unit:kubelet.service");
        find(&b, NEED_DIRECTORY, "/var/lib/kubelet/plugins_registry");
        ASSERT_TRUE(find(&b, NEED_NRI, "NRI plugins")->optional);
        LACKS(b, NEED_PROGRAM, "runc");         /* the plan names it by its path */
        LACKS(b, NEED_PROGRAM, "mdadm");
        LACKS(b, NEED_PROGRAM, "nvidia-smi");
        LACKS(b, NEED_LIBRARY, "libblkid.so.1");
        for (size_t i = 0; i < b.needs.n; i++)          /* files of each boot do not belong to the image */
                if (startswith(b.needs.items[i].name, "/run") || startswith(b.needs.items[i].name, "/dev"))
                        FAIL("%s is needed", b.needs.items[i].name);
}

TEST(needs_of_instance_stores) {
        BOX(b);
        b.s.config.instance.storage.strategy = STORAGE_RAID0;
        static char place[] = "/mnt/k8s-disks";
        b.s.config.instance.storage.mount_path = place;
        add_type(&b, "m6id.8xlarge", 2);
        const Need *mdadm = find(&b, NEED_PROGRAM, "mdadm");
        ASSERT_STREQ(mdadm->step, "create-raid:/dev/md/kubernetes");
        ASSERT_EQ(mdadm->cause, CAUSE_STORAGE_TOOL);
        ASSERT_STREQ(mdadm->types[0], "m6id.8xlarge");
        find(&b, NEED_MODULE, "raid0");
        find(&b, NEED_MODULE, "xfs");
        find(&b, NEED_PROGRAM, "mkfs.xfs");
        find(&b, NEED_PROGRAM, "cp");
        find(&b, NEED_LIBRARY, "libblkid.so.1");
        find(&b, NEED_LIBRARY, "libmount.so.1");
        find(&b, NEED_DIRECTORY, "/mnt/k8s-disks/0");
        LACKS(b, NEED_PROGRAM, "mkfs.ext4");
        LACKS(b, NEED_MODULE, "raid10");
}

TEST(a_single_store_needs_no_array) {
        BOX(b);
        b.s.config.instance.storage.strategy = STORAGE_RAID0;
        static char place[] = "/mnt/k8s-disks";
        b.s.config.instance.storage.mount_path = place;
        b.s.config.instance.storage.filesystem = FILESYSTEM_EXT4;
        add_type(&b, "m6id.large", 1);
        LACKS(b, NEED_PROGRAM, "mdadm");
        find(&b, NEED_PROGRAM, "mkfs.ext4");
        LACKS(b, NEED_PROGRAM, "mkfs.xfs");
}

TEST(needs_of_an_nvswitch_board) {
        BOX(b);
        b.s.config.nvidia.fabric_timeout_usec = 300 * USEC_PER_SEC;
        add_type(&b, "p5.48xlarge", 0);
        ASSERT_EQ(find(&b, NEED_MODULE, "nvidia")->cause, CAUSE_DRIVER);
        find(&b, NEED_MODULE, "nvidia_uvm");
        ASSERT_TRUE(!find(&b, NEED_UNIT, "nvidia-fabricmanager.service")->optional);
        ASSERT_EQ(find(&b, NEED_PROGRAM, "nv-fabricmanager")->cause, CAUSE_FABRIC_MANAGER);
        ASSERT_TRUE(find(&b, NEED_UNIT, "nvidia-persistenced.service")->optional);
        ASSERT_EQ(find(&b, NEED_PROGRAM, "nvidia-ctk")->cause, CAUSE_CDI);
        find(&b, NEED_PROGRAM, "/usr/bin/nvidia-container-runtime");
        ASSERT_EQ(find(&b, NEED_PROGRAM, "runc")->cause, CAUSE_NOT_READY);      /* the runtime starts it */
        /* the step for the clocks may fail, the one for the fabric must not */
        ASSERT_STREQ(find(&b, NEED_LIBRARY, "libnvidia-ml.so.1")->step, "await-fabric:fabric");
        ASSERT_EQ(find(&b, NEED_LIBRARY, "libnvidia-ml.so.1")->cause, CAUSE_NVML);
        LACKS(b, NEED_PROGRAM, "/opt/nvidia/nvlsm/sbin/nvlsm");
        LACKS(b, NEED_PROGRAM, "nvidia-imex-ctl");
        LACKS(b, NEED_PROGRAM, "/usr/sbin/runc");
}

TEST(each_class_of_machine_has_its_own_needs) {
        BOX(b);
        b.s.config.nvidia.fabric_timeout_usec = 300 * USEC_PER_SEC;
        b.s.config.nvidia.imex_channels = 2048;
        add_type(&b, "p6-b200.48xlarge", 0);
        ASSERT_EQ(find(&b, NEED_PROGRAM, "/opt/nvidia/nvlsm/sbin/nvlsm")->cause, CAUSE_FABRIC_MANAGER);
        find(&b, NEED_PROGRAM, "ibstat");
        ASSERT_EQ(find(&b, NEED_FILE, "/usr/share/nvidia/nvlsm/nvlsm.conf")->cause, CAUSE_FABRIC_MANAGER);
        ASSERT_EQ(find(&b, NEED_FILE, "/usr/share/nvidia/nvswitch/fabricmanager.cfg")->cause, CAUSE_FABRIC_MANAGER);
        find(&b, NEED_MODULE, "ib_umad");
        LACKS(b, NEED_PROGRAM, "nvidia-imex");
        add_type(&b, "p6e-gb200.36xlarge", 0);
        ASSERT_TRUE(find(&b, NEED_PROGRAM, "nvidia-imex")->optional);   /* the pod of the DRA driver has it */
        add_type(&b, "trn1.32xlarge", 0);
        ASSERT_EQ(find(&b, NEED_MODULE, "neuron")->cause, CAUSE_NEURON);
        ASSERT_EQ(strv_length(find(&b, NEED_MODULE, "neuron")->types), 1);
        ASSERT_EQ(strv_length(find(&b, NEED_MODULE, "nvidia")->types), 2);
        ASSERT_EQ(strv_length(find(&b, NEED_PROGRAM, "kubelet")->types), 3);
}

/* A boot does not fail for a part that it can do without. */
TEST(a_required_need_names_only_the_types_that_require_it) {
        BOX(b);
        b.s.config.nvidia.fabric_timeout_usec = 300 * USEC_PER_SEC;
        b.s.config.nvidia.health = HEALTH_WARN;
        add_type(&b, "g6.4xlarge", 0);
        ASSERT_TRUE(find(&b, NEED_LIBRARY, "libnvidia-ml.so.1")->optional);
        add_type(&b, "p5.48xlarge", 0);
        add_type(&b, "g5.4xlarge", 0);
        const Need *n = find(&b, NEED_LIBRARY, "libnvidia-ml.so.1");
        ASSERT_TRUE(!n->optional);
        ASSERT_EQ(strv_length(n->types), 1);
        ASSERT_STREQ(n->types[0], "p5.48xlarge");
}

TEST(huge_pages_need_hugetlbfs_and_numa_for_a_node) {
        BOX(b);
        PageRequest requests[] = { { .size = 2ULL << 20, .count = 512, .numa_node = -1 },
                                   { .size = 2ULL << 20, .count = 512, .numa_node = 0 } };
        b.s.config.instance.hugepages = (HugePages){ .mode = HUGEPAGES_EXPLICIT, .pages = requests, .n_pages = 1 };
        add_type(&b, "m6i.4xlarge", 0);
        ASSERT_EQ(find(&b, NEED_FEATURE, "CONFIG_HUGETLBFS")->cause, CAUSE_HUGEPAGES);
        LACKS(b, NEED_FEATURE, "CONFIG_NUMA");
        b.s.config.instance.hugepages.pages = requests + 1;
        add_type(&b, "m6i.4xlarge", 0);
        find(&b, NEED_FEATURE, "CONFIG_NUMA");
}

TEST(needs_of_imex_on_the_host) {
        BOX(b);
        b.s.config.nvidia.fabric_timeout_usec = 300 * USEC_PER_SEC;
        b.s.config.nvidia.imex_channels = 2048;
        b.s.config.nvidia.imex = IMEX_HOST;
        b.s.config.nvidia.imex_nodes = LIST("10.0.0.10", "10.0.0.11");
        add_type(&b, "p6e-gb200.36xlarge", 0);
        strv_free(b.s.config.nvidia.imex_nodes);
        ASSERT_TRUE(!find(&b, NEED_PROGRAM, "nvidia-imex")->optional);
        ASSERT_EQ(find(&b, NEED_PROGRAM, "nvidia-imex-ctl")->cause, CAUSE_IMEX);
        ASSERT_TRUE(!find(&b, NEED_UNIT, "nvidia-imex.service")->optional);
        find(&b, NEED_DIRECTORY, "/etc/nvidia-imex");
}

TEST(kernel_settings_are_needs_unless_configured_otherwise) {
        BOX(plain);
        add_type(&plain, "m6i.4xlarge", 0);
        ASSERT_EQ(find(&plain, NEED_SYSCTL, "vm.overcommit_memory=1")->cause, CAUSE_UNIT);
        ASSERT_STREQ(find(&plain, NEED_SYSCTL, "kernel.panic=10")->step, "start-unit:kubelet.service");
        ASSERT_TRUE(!find(&plain, NEED_NO_SWAP, "no swap")->optional);
        BOX(own);
        Variable set = { (char *)"kernel/panic", (char *)"10" };
        own.s.config.instance.sysctl = &set;
        own.s.config.instance.n_sysctl = 1;
        add_type(&own, "m6i.4xlarge", 0);
        own.s.config.instance.n_sysctl = 0;
        own.s.config.instance.sysctl = NULL;
        LACKS(own, NEED_SYSCTL, "kernel.panic=10");
        find(&own, NEED_SYSCTL, "kernel.panic_on_oops=1");
        BOX(other);
        static char flag[] = "--protect-kernel-defaults=false";
        static char *flags[] = { flag, NULL };
        other.s.config.kubelet.config = sample_json(&other.s, "{'failSwapOn': false}");
        other.s.config.kubelet.flags = flags;
        add_type(&other, "m6i.4xlarge", 0);
        other.s.config.kubelet.flags = NULL;
        LACKS(other, NEED_SYSCTL, "vm.overcommit_memory=1");
        LACKS(other, NEED_NO_SWAP, "no swap");
}

TEST(container_runtimes_of_the_user_are_needed) {
        BOX(b);
        b.s.config.containerd.config = sample_json(&b.s,
                "{'plugins': {'io.containerd.cri.v1.runtime': {'containerd': {'runtimes': {'kata': {'options': "
                "{'BinaryName': '/opt/kata/bin/kata'}}}}}}}");
        add_type(&b, "m6i.4xlarge", 0);
        ASSERT_STREQ(find(&b, NEED_PROGRAM, "/opt/kata/bin/kata")->step, "write-file:/etc/containerd/config.toml");
        find(&b, NEED_PROGRAM, "/usr/sbin/runc");
}

/* The tables have every type of action that uses parts of the image. The test makes plans of all instance
 * types, so that it covers a new row, too. */
TEST(every_type_has_a_plan_and_unique_needs) {
        BOX(b);
        b.s.config.nvidia.fabric_timeout_usec = 300 * USEC_PER_SEC;
        b.s.config.nvidia.imex_channels = 2048;
        for (size_t i = 0; i < n_instance_types; i++)
                add_type(&b, instance_types[i].name, 0);
        ASSERT_EQ(strv_length(find(&b, NEED_UNIT, "kubelet.service")->types), n_instance_types);
        for (size_t i = 0; i < b.needs.n; i++)
                for (size_t k = 0; k < i; k++)
                        if (b.needs.items[i].kind == b.needs.items[k].kind &&
                            streq(b.needs.items[i].name, b.needs.items[k].name))
                                FAIL("%s is needed twice", b.needs.items[i].name);
}

/* ---- types ---- */

TEST(type_names_show_instance_stores) {
        static const char *const yes[] = { "m6id.8xlarge", "c5d.large", "i4i.xlarge", "i3en.metal", "d3.xlarge",
                                           "z1d.large", "m6gd.medium", "x2idn.16xlarge", "r8gd.24xlarge" };
        static const char *const no[] = { "m6i.8xlarge", "c5.large", "inf2.xlarge", "t3.micro", "hpc7a.96xlarge",
                                          "", "x", "u-6tb1.metal" };
        for (size_t i = 0; i < ARRAY_SIZE(yes); i++)
                if (!type_has_stores(yes[i]))
                        FAIL("%s has none", yes[i]);
        for (size_t i = 0; i < ARRAY_SIZE(no); i++)
                if (type_has_stores(no[i]))
                        FAIL("%s has some", no[i]);
}

TEST(an_image_serves_its_own_architecture) {
        const Image arm = { .machine = EM_AARCH64 }, x86 = { .machine = EM_X86_64 }, unknown = {};
        ASSERT_TRUE(image_serves(&arm, "p6e-gb200.36xlarge") && !image_serves(&x86, "p6e-gb200.36xlarge"));
        ASSERT_TRUE(!image_serves(&arm, "p5.48xlarge") && image_serves(&x86, "p5.48xlarge"));
        ASSERT_TRUE(image_serves(&unknown, "p5.48xlarge") && image_serves(&unknown, "p6e-gb200.36xlarge"));
        ASSERT_TRUE(image_serves(&arm, "m6i.large"));   /* no table has its architecture */
        ASSERT_TRUE(!machine_name(EM_386));
}

/* The modules of an image decide, by modules.dep(5). */
TEST(the_drivers_of_an_image_select_its_types) {
        char folder[] = "/tmp/test-needs-XXXXXX";
        ASSERT_TRUE(mkdtemp(folder));
        _cleanup_(root_freep) Root *root = NULL;
        static char kernel[] = "6.12.1", *kernels[] = { kernel, NULL };
        static const char dep[] = "/lib/modules/6.12.1/modules.dep";
        ASSERT_OK(root_new(folder, &root));
        const Image arm = { .root = root, .machine = EM_AARCH64, .kernels = kernels };
        const struct { const char *dep, *first; size_t n; } cases[] = {
                { "kernel/a.ko:\n", "m6g.4xlarge", 2 },
                { "extra/nvidia.ko: kernel/a.ko\n", "g5g.16xlarge", 11 },
                { "extra/neuron.ko:\n", "m6g.4xlarge", 2 },     /* all its machines are x86 */
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                ASSERT_OK(root_replace(root, dep, cases[i].dep, strlen(cases[i].dep), 0644));
                _free_ char *why = NULL;
                _strv_ char **types = image_types(&arm, &why);
                for (size_t k = 0; types[k]; k++)
                        if (!image_serves(&arm, types[k]))
                                FAIL("%s is served", types[k]);
                ASSERT_STREQ(types[0], cases[i].first);
                ASSERT_EQ(strv_length(types), cases[i].n);
                ASSERT_TRUE(strv_contains(types, "m6gd.8xlarge") && !strv_contains(types, "m6i.4xlarge"));
                ASSERT_CONTAINS(why, i == 1   ? "all arm64 types for its NVIDIA driver, and plain ones ("
                                     : i == 2 ? "all arm64 types for its AWS Neuron driver, and plain ones ("
                                              : "plain arm64 types only: the image has no");
        }
        ASSERT_OK(root_remove(root, dep));
        ASSERT_OK(root_remove_dir(root, "/lib/modules/6.12.1"));
        ASSERT_OK(root_remove_dir(root, "/lib/modules"));
        ASSERT_OK(root_remove_dir(root, "/lib"));
        ASSERT_OK(rmdir(folder));
}

/* ---- what is printed ---- */

static Checks some_checks(void) {
        static char step[] = "create-raid:/dev/md/kubernetes", a[] = "p5.48xlarge", b[] = "p5e.48xlarge",
                    c[] = "p5en.48xlarge";
        static char *types[] = { a, b, c, NULL };
        const Need mdadm = { .kind = NEED_PROGRAM, .cause = CAUSE_STORAGE_TOOL, .step = step, .types = types };
        Checks all = {};
        checks_add(&all, CHECK_OK, "program", "cp", "/usr/bin/cp");
        check_tell(checks_add(&all, CHECK_UNKNOWN, "version", "kubelet", NULL), NULL, "give --kubelet-version");
        check_tell(checks_add(&all, CHECK_WARNING, "file", "/etc/eks/pause.tar", NULL), NULL, "it is not there");
        checks_add(&all, CHECK_OK, "program", "ctr", "/usr/bin/ctr");
        check_tell(checks_add(&all, CHECK_FAILED, "program", "mdadm", NULL), &mdadm, "install mdadm");
        return all;
}

TEST(failures_come_first_and_good_checks_share_a_line) {
        _cleanup_(checks_done) Checks all = some_checks();
        _free_ char *text = checks_to_text(&all, false);
        ASSERT_STREQ(text,
                     "failed   program            mdadm\n"
                     "         install mdadm\n"
                     "         wanted by create-raid:/dev/md/kubernetes of p5.48xlarge and 2 more; a boot ends with\n"
                     "         ESTORAGETOOL\n"
                     "warning  file               /etc/eks/pause.tar\n"
                     "         it is not there\n"
                     "unknown  version            kubelet\n"
                     "         give --kubelet-version\n"
                     "ok       program            cp, ctr\n"
                     "\n5 checks: 1 failed, 1 warning, 1 unknown, 2 ok\n");
        _free_ char *whole = checks_to_text(&all, true);
        ASSERT_CONTAINS(whole, "ok       program            cp                                   /usr/bin/cp\n");
}

TEST(wide_columns_and_long_texts_wrap) {
        static const char path[] = "/lib/modules/6.12.46-66.121.amzn2023.x86_64/kernel/drivers/net/ethernet/x.ko";
        Checks all = {};
        _cleanup_(text_done) Text facts = {};
        check_tell(checks_add(&all, CHECK_WARNING, "no-image-credential-provider", "plan", NULL), NULL, "why");
        check_tell(checks_add(&all, CHECK_WARNING, "module", "ena", path), NULL, "what");
        _free_ char *text = checks_to_text(&all, true);
        ASSERT_CONTAINS(text, "warning  no-image-credential-provider plan\n         why\n");
        ASSERT_CONTAINS(text, "warning  module                       ena\n         /lib/modules/6.12.46-66.121");
        for (unsigned i = 0; i < 10; i++)
                facts_add(&facts, "types", "m6i.4xlarge and some others: those of its architecture that it has drivers "
                                           "for, and plain ones");
        ASSERT_CONTAINS(facts.data, "types       m6i.4xlarge and some others: those of its architecture that it has "
                                    "drivers for, and\n            plain ones\n");
        checks_done(&all);
}

TEST(json_has_the_order_of_the_table) {
        _cleanup_(checks_done) Checks all = some_checks();
        _cleanup_(json_decrefp) json_t *json = checks_to_json(&all);
        _free_ char *first = json_dumps(json_array_get(json, 0), JSON_COMPACT | JSON_SORT_KEYS);
        ASSERT_STREQ(first, "{\"cause\":\"ESTORAGETOOL\",\"code\":\"program\",\"step\":\"create-raid:/dev/md/kubernetes\","
                            "\"subject\":\"mdadm\",\"text\":\"install mdadm\","
                            "\"types\":[\"p5.48xlarge\",\"p5e.48xlarge\",\"p5en.48xlarge\"],\"verdict\":\"failed\"}");
        _free_ char *last = json_dumps(json_array_get(json, 4), JSON_COMPACT | JSON_SORT_KEYS);
        ASSERT_STREQ(last, "{\"code\":\"program\",\"found\":\"/usr/bin/ctr\",\"subject\":\"ctr\",\"verdict\":\"ok\"}");
}

/* An image may be hostile: names in it must neither move the cursor nor break JSON. */
TEST(control_characters_in_names_are_escaped) {
        Checks all = {};
        check_tell(checks_add(&all, CHECK_FAILED, "program", "a\033[2Jb\nfailed  x", "\xff\xfe"), NULL,
                   "of \033]0;title\a and \xff");
        _free_ char *text = checks_to_text(&all, false);
        ASSERT_TRUE(!strchr(text, '\033') && !strchr(text, '\a') && !strchr(text, (char)0xff));
        ASSERT_TRUE(!strstr(text, "\nfailed  x"));
        _cleanup_(json_decrefp) json_t *json = checks_to_json(&all);
        ASSERT_TRUE(*json_get_text(json_array_get(json, 0), "found"));
        ASSERT_TRUE(*json_get_text(json_array_get(json, 0), "text"));
        checks_done(&all);
}

TEST(long_lists_of_types_are_shortened) {
        static char a[] = "a", b[] = "b", c[] = "c";
        const struct { char *types[4]; const char *text; } cases[] = {
                { { NULL }, "" }, { { a, NULL }, "a" }, { { a, b, NULL }, "a and b" },
                { { a, b, c, NULL }, "a and 2 more" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _free_ char *text = types_text((char *const *)cases[i].types);
                ASSERT_STREQ(text, cases[i].text);
        }
}

TEST_MAIN
