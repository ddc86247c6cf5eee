/* SPDX-License-Identifier: Apache-2.0
 * Detection on fixture roots (tests/fixtures/NAME.txt), with a metadata service and an EC2 that answer from tables. */
#include "host/detect.h"
#include "host/tables.h"

#include "files.h"
#include "test.h"
#include "base/paths.h"
#include "base/run.h"
#include "base/str.h"
#include "base/time.h"

#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct Run { Root *root; Host *host; Diag diag; Config config; HostOptions options; char dir[32]; } Run;

/* ---- the services: they stand in for src/aws ---- */

typedef struct Answer { const char *path, *text; } Answer;      /* text NULL: the service does not answer */
struct Imds { const Answer *answers; unsigned requests; };
static unsigned ec2_names, ec2_limits;
static int ec2_limits_result;

int imds_get(Imds *i, const char *path, char **ret, size_t *ret_size, Diag *diag) {
        i->requests++;
        for (const Answer *a = i->answers; a->path; a++)
                if (streq(a->path, path)) {
                        if (!a->text)
                                return diag_error_at(diag, -ETIMEDOUT, CAUSE_IMDS, NULL, path, "no answer");
                        *ret = xstrdup(a->text);
                        if (ret_size)
                                *ret_size = strlen(a->text);
                        return 0;
                }
        return -ENOENT;
}

static PoolState pool_state;
static const char *pool_text;

PoolState imds_pool_state(Imds *imds, char **ret) {
        (void)imds;
        *ret = xstrdup_or_null(pool_text);
        return pool_state;
}

/* fork(2): how often, and with how many threads at most. */
static unsigned forks, threads_at_fork;
static bool waits_for_fork;             /* EC2 answers only after a fork, or after a second */
static bool waits_for_end;              /* and only when no child is left, or after ten seconds */
static bool child_is_left;
static unsigned ec2_silent;             /* this many requests get no answer while the caller waits */
static unsigned ec2_names_again;        /* requests for a name that is already known */
static const Run *late_disks;           /* its disks appear while init asks EC2 */

static void move_disks(const Run *r, const char *from, const char *to) {
        _free_ char *old = xasprintf("%s/sys/%s", r->dir, from), *new = xasprintf("%s/sys/%s", r->dir, to);
        ASSERT_EQ(rename(old, new), 0);
}

static bool has_child(void) {
        siginfo_t info = {};
        return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static void on_fork(void) {
        _cleanup_(root_freep) Root *root = NULL;
        _strv_ char **threads = NULL;
        ASSERT_OK(root_new("/", &root));
        ASSERT_OK(root_list(root, "/proc/self/task", &threads));
        /* qemu-user has a thread of its own */
        threads_at_fork = MAX(threads_at_fork, (unsigned)strv_length(threads) - (TRANSLATED_BY("qemu-user") ? 1 : 0));
        __atomic_add_fetch(&forks, 1, __ATOMIC_RELEASE);
}

static void count_forks(void) {
        static bool counts;
        if (!counts)
                ASSERT_EQ(pthread_atfork(on_fork, NULL, NULL), 0);
        counts = true;
        forks = threads_at_fork = 0;
}

int ec2_check_endpoints(const Ec2 *ec2, bool asks_ec2, Diag *diag) {
        return asks_ec2 && !ec2->region ? diag_error(diag, -EINVAL, CAUSE_EC2, "no region") : 0;
}

int ec2_private_dns_name(const Ec2 *ec2, const char *instance_id, char **ret, Diag *diag) {
        ec2_names++;
        for (unsigned ms = 0; waits_for_fork && ms < 1000 && __atomic_load_n(&forks, __ATOMIC_ACQUIRE) == 0; ms++)
                usleep(1000);
        for (unsigned ms = 0; waits_for_end && ms < 10000 && has_child(); ms++)
                usleep(1000);
        child_is_left = has_child();
        if (late_disks)
                move_disks(late_disks, "later", "block");
        if (!startswith(instance_id, "i-"))
                return diag_error(diag, -EINVAL, CAUSE_EC2, "no such instance");
        ec2_names_again += ec2->wish.again;
        if (ec2_silent > 0) {
                ec2_silent--;
                if (ec2->wish.settle && ec2->wish.settle(ec2->wish.user, "throttled", true))
                        return -ECANCELED;
        }
        *ret = xasprintf("ip-10-1-2-3.%s.compute.internal", ec2->region);
        return 0;
}

int ec2_eni_limits(const Ec2 *ec2, const char *instance_type, unsigned *ret_enis, unsigned *ret_addresses, Diag *diag) {
        ec2_limits++;
        if (ec2_limits_result < 0)
                return diag_error(diag, ec2_limits_result, CAUSE_EC2, "UnauthorizedOperation (%s, %s)", instance_type,
                                  ec2->region);
        *ret_enis = 15;
        *ret_addresses = 50;
        return 0;
}

#define DOCUMENT(type) "{\"instanceId\": \"i-0aaaaaaaaaaaaaaa1\", \"instanceType\": \"" type "\", \"region\": \"eu-west-1\", " \
                       "\"availabilityZone\": \"eu-west-1b\", \"privateIp\": \"10.1.2.3\", \"devpayProductCodes\": null}"
#define DOCUMENT_PATH "dynamic/instance-identity/document"
#define ANSWERS(type)                                              \
        { DOCUMENT_PATH, DOCUMENT(type) },                         \
        { "meta-data/mac", "0a:1b:2c:3d:4e:5f" },                  \
        { "meta-data/services/domain", "amazonaws.com" },          \
        { "meta-data/network/interfaces/macs/0a:1b:2c:3d:4e:5f/ipv6s", "2001:db8::5\n2001:db8::6" }

/* ---- one detection ---- */

static void run_program(char *const *argv) {
        _cleanup_(child_result_done) ChildResult c = {};
        ASSERT_OK(child_run(argv, 60 * USEC_PER_SEC, 4096, &c));
        if (c.status != 0)
                FAIL("%s: %s", argv[0], c.errors);
}

static void run_done(Run *r) {
        host_free(r->host);
        root_free(r->root);
        diag_done(&r->diag);
        json_decref(r->options.cached_status);
        if (r->dir[0])
                run_program((char *[]){ (char *)"rm", (char *)"-r", r->dir, NULL });
}

static void run_open(Run *r, const char *fixture) {
        strcpy(r->dir, P_tmpdir "/test-host-XXXXXX");
        ASSERT_TRUE(mkdtemp(r->dir));
        run_program((char *[]){ (char *)"tests/fixtures/expand.sh", (char *)fixture, r->dir, NULL });
        ASSERT_OK(root_new(r->dir, &r->root));
        ec2_names = ec2_limits = 0;
        ec2_limits_result = 0;
}

static int run_detect(Run *r) {
        return host_detect(r->root, &r->config, &r->options, &r->host, &r->diag);
}

static void run_ok(Run *r) {
        int result = run_detect(r);
        const Diagnostic *e = diag_first_error(&r->diag);
        if (result < 0)
                FAIL("detection: %s", e ? e->text : "failed without a word");
}

static void run_write(Run *r, const char *path, const char *text) {
        ASSERT_TRUE(root_replace(r->root, path, text, strlen(text), 0644) >= 0);
}

/* The detection fails, with that cause, and the message has both words in it. */
static void run_fails(Run *r, Cause cause, const char *word, const char *other) {
        ASSERT_TRUE(run_detect(r) < 0);
        ASSERT_TRUE(!r->host);
        const Diagnostic *e = diag_first_error(&r->diag);
        ASSERT_TRUE(e);
        _free_ char *text = diagnostic_format(e);
        ASSERT_STREQ(cause_word(e->cause), cause_word(cause));
        ASSERT_CONTAINS(text, word);
        ASSERT_CONTAINS(text, other);
}

static void use_disks(Run *r, Imds *imds) {
        r->options.imds = imds;
        r->options.storage = true;
        r->config.instance.storage = (LocalStorage){ .strategy = STORAGE_RAID0, .mount_path = (char *)"/mnt/k8s-disks" };
        count_forks();
}

#define RUN(name, fixture) _cleanup_(run_done) Run name = {}; run_open(&name, fixture)

static size_t count_pci(const Host *h, unsigned vendor, unsigned class) {
        size_t n = 0;
        for (size_t i = 0; i < h->n_pci; i++)
                n += h->pci[i].vendor == vendor && h->pci[i].class >> 8 == class;
        return n;
}

static size_t count_driver(const Host *h, const char *driver) {
        size_t n = 0;
        for (size_t i = 0; i < h->n_pci; i++)
                n += h->pci[i].driver && streq(h->pci[i].driver, driver);
        return n;
}

static size_t count_disks(const Host *h, DiskKind kind, bool in_use) {
        size_t n = 0;
        for (size_t i = 0; i < h->n_disks; i++)
                n += h->disks[i].kind == kind && h->disks[i].in_use == in_use;
        return n;
}

/* ---- machines ---- */

TEST(facts_of_an_m5_large) {
        RUN(r, "m5-large");
        run_ok(&r);
        const Host *h = r.host;
        ASSERT_TRUE(!h->modelled && !h->type);
        ASSERT_STREQ(h->product_name, "m5.large");
        ASSERT_STREQ(h->kernel, "6.12.40-63.114.amzn2023.x86_64");
        ASSERT_STREQ(h->arch, "x86_64");
        ASSERT_EQ(h->cpus, 2);
        ASSERT_EQ(h->memory_bytes, 7946000ULL * 1024);
        ASSERT_EQ(h->n_nodes, 1);
        ASSERT_EQ(h->nodes[0].cpus, 2);
        ASSERT_EQ(h->nodes[0].memory_bytes, 7946000ULL * 1024);
        ASSERT_STREQ(h->kubelet_version, "1.33.4");
        ASSERT_STREQ(h->containerd_version, "2.1.5");
        ASSERT_TRUE(!h->driver_version && !h->nvidia_runtime && !h->soci_snapshotter);
        ASSERT_STREQ(h->image_credential_provider, "/etc/eks/image-credential-provider/ecr-credential-provider");
        ASSERT_EQ(h->n_pci, 5);
        ASSERT_STREQ(h->pci[4].address, "0000:00:05.0");
        ASSERT_EQ(h->pci[4].vendor, 0x1d0f);
        ASSERT_EQ(h->pci[4].device, 0xec20);
        ASSERT_EQ(h->pci[4].class, 0x020000);
        ASSERT_EQ(h->pci[4].subsystem_device, 0xec20);
        ASSERT_EQ(h->pci[4].numa_node, -1);
        ASSERT_STREQ(h->pci[4].driver, "ena");
        ASSERT_TRUE(!h->pci[0].driver);
}

TEST(disks_and_interfaces_of_an_m5_large) {
        RUN(r, "m5-large");
        run_ok(&r);
        const Host *h = r.host;
        ASSERT_EQ(h->n_disks, 1);               /* neither loop nor zram */
        ASSERT_STREQ(h->disks[0].name, "nvme0n1");
        ASSERT_STREQ(h->disks[0].model, "Amazon Elastic Block Store");  /* without the blanks that pad it */
        ASSERT_STREQ(h->disks[0].serial, "vol0b1c2d3e4f5a6b7c8");
        ASSERT_EQ(h->disks[0].kind, DISK_EBS);
        ASSERT_EQ(h->disks[0].bytes, 80000000000ULL);
        ASSERT_TRUE(h->disks[0].in_use);
        ASSERT_EQ(h->n_nics, 1);                /* neither lo nor a pod's veth nor bonding_masters */
        ASSERT_STREQ(h->nics[0].name, "ens5");
        ASSERT_STREQ(h->nics[0].mac, "0a:1b:2c:3d:4e:5f");
        ASSERT_STREQ(h->nics[0].driver, "ena");
        ASSERT_STREQ(h->nics[0].pci_address, "0000:00:05.0");
        ASSERT_EQ(h->nics[0].mtu, 9001);
}

TEST(facts_of_a_p5) {
        RUN(r, "p5-48xlarge");
        run_ok(&r);
        const Host *h = r.host;
        ASSERT_EQ(count_pci(h, 0x10de, 0x0302), 8);
        ASSERT_EQ(count_pci(h, 0x10de, 0x0680), 4);
        ASSERT_EQ(count_driver(h, "efa"), 32);
        ASSERT_EQ(count_disks(h, DISK_INSTANCE_STORE, false), 7);
        ASSERT_EQ(count_disks(h, DISK_INSTANCE_STORE, true), 1);        /* held by an md array */
        ASSERT_EQ(count_disks(h, DISK_EBS, true), 1);
        ASSERT_EQ(h->n_disks, 9);
        ASSERT_STREQ(h->disks[1].model, "Amazon EC2 NVMe Instance Storage");
        ASSERT_TRUE(startswith(h->disks[1].serial, "AWS"));
        ASSERT_EQ(h->disks[1].bytes, 3800000000000ULL);
        ASSERT_EQ(h->cpus, 192);
        ASSERT_EQ(h->n_nodes, 2);
        ASSERT_EQ(h->nodes[1].id, 1);
        ASSERT_EQ(h->nodes[1].cpus, 96);
        ASSERT_EQ(h->nodes[1].memory_bytes, 1057000000ULL * 1024);
        ASSERT_STREQ(h->driver_version, "580.95.05");
        ASSERT_TRUE(h->nvidia_runtime && h->soci_snapshotter);
        ASSERT_EQ(h->pci[h->n_pci - 1].numa_node, 1);
}

static bool has_pool(const Host *h, uint64_t size, int node, uint64_t count) {
        for (size_t i = 0; i < h->n_pools; i++)
                if (h->pools[i].size == size && h->pools[i].node == node)
                        return h->pools[i].count == count;
        return false;
}

TEST(facts_of_a_gb200) {
        RUN(r, "p6e-gb200");
        run_ok(&r);
        const Host *h = r.host;
        ASSERT_STREQ(h->arch, "aarch64");
        ASSERT_EQ(count_pci(h, 0x10de, 0x0302), 4);
        ASSERT_EQ(count_pci(h, 0x10de, 0x0680), 0);
        ASSERT_EQ(h->n_disks, 4);               /* not the hidden path of a multipath namespace */
        ASSERT_EQ(count_disks(h, DISK_INSTANCE_STORE, false), 3);
        ASSERT_EQ(h->cpus, 144);
        ASSERT_EQ(h->n_nodes, 34);
        for (unsigned i = 0; i < h->n_nodes; i++) {
                ASSERT_EQ(h->nodes[i].id, i);   /* by number, not by name */
                ASSERT_EQ(h->nodes[i].cpus, i < 2 ? 72 : 0);
                ASSERT_EQ(h->nodes[i].memory_bytes > 0, i < 2 || i % 8 == 2);
        }
        ASSERT_EQ(h->nodes[26].memory_bytes, 193200128ULL * 1024);
        ASSERT_TRUE(has_pool(h, 2 << 20, 26, 0) && !has_pool(h, 2 << 20, 27, 0));
        ASSERT_EQ(h->n_shortfalls, 0);
}

/* With CDMM the driver keeps the GPU memory, so the GPU nodes stay empty. */
TEST(gpu_numa_nodes_of_a_gb300_with_cdmm_are_empty) {
        RUN(r, "p6e-gb300");
        run_ok(&r);
        ASSERT_EQ(r.host->cpus, 144);
        ASSERT_EQ(r.host->n_nodes, 34);
        ASSERT_EQ(r.host->nodes[33].memory_bytes, 0);
        ASSERT_EQ(r.host->n_pools, 4);
        ASSERT_EQ(r.host->n_shortfalls, 0);
}

/* Nodes that are not online leave gaps. */
TEST(numa_node_numbers_may_have_gaps) {
        RUN(r, "p6e-gb200");
        for (unsigned i = 3; i < 34; i++) {
                _free_ char *away = xasprintf("%s/sys/devices/system/node/node%u", r.dir, i);
                if (i % 8 != 2)
                        ASSERT_EQ(tree_remove(away), 0);
        }
        run_ok(&r);
        ASSERT_EQ(r.host->n_nodes, 6);
        ASSERT_EQ(r.host->nodes[3].id, 10);
        ASSERT_EQ(r.host->nodes[5].id, 26);
}

TEST(facts_of_a_g6) {
        RUN(r, "g6-xlarge");
        run_ok(&r);
        const Host *h = r.host;
        ASSERT_EQ(count_pci(h, 0x10de, 0x0302), 1);
        ASSERT_STREQ(h->kubelet_version, "1.31.7");
        ASSERT_STREQ(h->containerd_version, "1.7.27");
        ASSERT_EQ(h->disks[0].kind, DISK_INSTANCE_STORE);       /* whatever the kernel calls it */
        ASSERT_STREQ(h->disks[0].serial, "AWS47F206C2DE5276E70");
        ASSERT_EQ(h->disks[1].kind, DISK_EBS);
        ASSERT_TRUE(!h->driver_version && h->nvidia_runtime);
        ASSERT_EQ(h->max_enis, 4);
        ASSERT_EQ(h->addresses_per_eni, 15);
}

static void put_file(Run *r, const char *path, mode_t mode) {
        _free_ char *full = xasprintf("%s%s", r->dir, path);
        run_write(r, path, "");
        if (S_ISDIR(mode))
                ASSERT_TRUE(unlink(full) == 0 && mkdir(full, 0755) == 0);
        else
                ASSERT_OK(chmod(full, mode));
}

static bool warned_of(const Run *r, const char *path) {
        for (size_t i = 0; i < r->diag.n; i++) {
                _free_ char *text = diagnostic_format(&r->diag.items[i]);
                if (r->diag.items[i].warning && strstr(text, path) && strstr(text, "is not executable"))
                        return true;
        }
        return false;
}

/* nodeadm uses os.Stat, which ignores the mode. */
TEST(a_program_that_is_not_executable_counts_with_a_warning) {
        RUN(r, "m5-large");
        put_file(&r, NVIDIA_RUNTIME, 0644);
        put_file(&r, ECR_PROVIDER, 0644);
        run_ok(&r);
        ASSERT_TRUE(r.host->nvidia_runtime && warned_of(&r, NVIDIA_RUNTIME));
        ASSERT_STREQ(r.host->image_credential_provider, ECR_PROVIDER);
        ASSERT_TRUE(warned_of(&r, ECR_PROVIDER));
}

TEST(nvidia_runtime_is_found_without_a_gpu) {
        RUN(r, "m5-large");
        put_file(&r, NVIDIA_RUNTIME, 0755);
        run_ok(&r);
        ASSERT_TRUE(r.host->nvidia_runtime && !warned_of(&r, NVIDIA_RUNTIME));
        ASSERT_EQ(r.host->gpus.count, 0);
}

TEST(a_directory_is_not_a_credential_provider) {
        RUN(r, "m5-large");
        put_file(&r, ECR_PROVIDER, S_IFDIR);
        run_ok(&r);
        ASSERT_TRUE(!r.host->image_credential_provider);
        host_free(r.host);
        r.host = NULL;
        diag_done(&r.diag);
        setenv("ECR_CREDENTIAL_PROVIDER_BIN_PATH", ECR_PROVIDER, 1);
        run_fails(&r, CAUSE_FACTS, "names a directory", "ECR_CREDENTIAL_PROVIDER_BIN_PATH");
        unsetenv("ECR_CREDENTIAL_PROVIDER_BIN_PATH");
}

TEST(gpus_and_huge_pages_of_a_p6) {
        RUN(r, "p6-b200");
        run_write(&r, "/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages", "10561\n");
        run_write(&r, "/sys/devices/system/node/node0/hugepages/demote", "not a pool");
        run_write(&r, "/etc/default/mig", "MIG_PARTITION=9,9\n");
        run_ok(&r);
        const Host *h = r.host;
        ASSERT_EQ(h->gpus.class, GPU_CLASS_NVLINK5);
        ASSERT_EQ(h->gpus.count, 8);
        ASSERT_EQ(h->gpus.expected, 8);
        ASSERT_STREQ(h->gpus.model->name, "b200");
        ASSERT_TRUE(!h->gpus.doubt);
        ASSERT_STREQ(h->gpus.mig_default, "9,9");
        ASSERT_EQ(h->n_shortfalls, 0);
        ASSERT_EQ(host_efa(h), 8);
        ASSERT_EQ(h->ptrace_scope, 0);
        ASSERT_EQ(h->page_size, 2 << 20);
        ASSERT_EQ(h->n_pools, 4);
        ASSERT_EQ(h->pools[0].size, 1 << 30);
        ASSERT_EQ(h->pools[1].node, 1);
        ASSERT_TRUE(has_pool(h, 2 << 20, 0, 0) && has_pool(h, 2 << 20, 1, 10561));
        unsigned managing = 0;
        for (size_t i = 0; i < h->n_pci; i++)
                managing += h->pci[i].switch_management;
        ASSERT_EQ(managing, 2);
}

TEST(unreadable_vpd_is_not_a_shortfall_if_the_count_is_right) {
        RUN(r, "p6-b200");
        uid_t user = geteuid();
        ASSERT_EQ(chmod(r.dir, 0755), 0);
        for (unsigned i = 3; i <= 4; i++) {
                _free_ char *path = xasprintf("%s/sys/bus/pci/devices/0000:7%u:00.0/vpd", r.dir, i);
                ASSERT_EQ(chmod(path, user == 0 ? 0600 : 0), 0);
        }
        if (user == 0)
                ASSERT_EQ(seteuid(65534), 0);
        run_ok(&r);
        if (user == 0)
                ASSERT_EQ(seteuid(0), 0);
        ASSERT_EQ(r.host->gpus.class, GPU_CLASS_NVLINK5);
        ASSERT_EQ(r.host->n_shortfalls, 0);     /* the number of functions is that of the type */
        ASSERT_CONTAINS(r.host->gpus.unread, "0000:73:00.0/vpd cannot be read: Permission denied, only root can; as p6-b200.48xlarge has 2 functions");
        ASSERT_EQ(chmod(r.dir, 0700), 0);
}

TEST(unreadable_vpd_with_a_wrong_count_advises_to_run_as_root) {
        RUN(r, "p6-b200");
        uid_t user = geteuid();
        ASSERT_EQ(chmod(r.dir, 0755), 0);
        for (unsigned i = 3; i <= 4; i++) {
                _free_ char *device = xasprintf("/sys/bus/pci/devices/0000:7%u:00.0", i);
                _free_ char *vpd = xasprintf("%s%s/vpd", r.dir, device), *uevent = xasprintf("%s/uevent", device);
                ASSERT_EQ(chmod(vpd, user == 0 ? 0600 : 0), 0);
                run_write(&r, uevent, "PCI_CLASS=20000\nPCI_ID=15B3:1021\n");
        }
        if (user == 0)
                ASSERT_EQ(seteuid(65534), 0);
        run_ok(&r);
        if (user == 0)
                ASSERT_EQ(seteuid(0), 0);
        ASSERT_TRUE(!r.host->gpus.unread);
        ASSERT_EQ(r.host->n_shortfalls, 1);
        ASSERT_CONTAINS(r.host->shortfalls[0].text, "0000:73:00.0/vpd cannot be read: Permission denied, only root can; run nodestrap as root to find out");
}

TEST(etc_default_mig_is_not_read_if_the_configuration_has_mig) {
        RUN(r, "g7e");
        MigRequest request = {};
        r.config.nvidia.mig = &request;
        r.config.nvidia.n_mig = 1;
        run_write(&r, "/etc/default/mig", "MIG_PARTITION=$x\n");
        run_ok(&r);
        ASSERT_TRUE(!r.host->gpus.mig_default);
}

TEST(huge_pages_are_found_without_numa_nodes) {
        RUN(r, "none");
        run_write(&r, "/sys/kernel/mm/hugepages/hugepages-524288kB/nr_hugepages", "3\n");
        run_write(&r, "/proc/meminfo", "MemTotal:        4039448 kB\nHugepagesize:     524288 kB\n");
        r.options.kubelet_version = r.options.containerd_version = "1.34.1";
        run_ok(&r);
        ASSERT_EQ(r.host->n_pools, 1);
        ASSERT_TRUE(has_pool(r.host, 512 << 20, -1, 3));
        ASSERT_EQ(r.host->page_size, 512 << 20);
        ASSERT_EQ(r.host->ptrace_scope, -1);
}

TEST(invalid_huge_page_numbers_are_errors) {
        static const struct { const char *path, *text, *word; } damaged[] = {
                { "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "many\n",                                   "the number of reserved huge pages" },
                { "/proc/meminfo", "MemTotal:        4039448 kB\nHugepagesize:     2 MB\n",                             "default size of huge pages" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(damaged); i++) {
                RUN(r, "none");
                run_write(&r, damaged[i].path, damaged[i].text);
                run_fails(&r, CAUSE_FACTS, damaged[i].path, damaged[i].word);
        }
}

TEST(dead_links_in_daemon_directories_are_found) {
        RUN(r, "none");
        _free_ char *lib = xasprintf("%s/var/lib", r.dir), *link = xasprintf("%s/containerd", lib), *data = xasprintf("%s/data", r.dir);
        ASSERT_OK(root_make_dirs(r.root, "/var/lib", 0755));
        ASSERT_EQ(symlink("/mnt/gone", link), 0);
        ASSERT_EQ(symlink("nowhere", data), 0);
        run_write(&r, "/etc/eks/kubelet-version.txt", "v1.34.2\n");
        run_write(&r, "/etc/eks/containerd-version.txt", "2.1.5\n");
        run_ok(&r);
        ASSERT_EQ(strv_length(r.host->dead_links), 1);
        ASSERT_STREQ(r.host->dead_links[0], "/var/lib/containerd is a link to /mnt/gone, which does not exist");
        char flag[] = "--root-dir=/data/kubelet";
        r.config.kubelet.flags = (char *[]){ flag, NULL };
        r.host = host_free(r.host);
        run_ok(&r);
        ASSERT_EQ(strv_length(r.host->dead_links), 2);
        ASSERT_STREQ(r.host->dead_links[0], "/data is a link to nowhere, which does not exist");
}

static void detect_units(Run *r, char ***ret) {
        strv_free(*ret);
        *ret = detect_bootstrappers(r->root);
}

TEST(nodeadm_units_count_only_if_enabled_beside_nodestrap) {
        RUN(r, "none");
        _strv_ char **found = NULL;
        detect_units(&r, &found);
        ASSERT_TRUE(!found);
        run_write(&r, "/etc/systemd/system/multi-user.target.wants/nodeadm-config.service", "");
        run_write(&r, "/etc/systemd/system/multi-user.target.wants/nodeadm-run.service", "");
        detect_units(&r, &found);
        ASSERT_TRUE(!found);                    /* an unchanged image, where nodestrap may run as nodeadm */
        run_write(&r, "/etc/systemd/system/multi-user.target.wants/nodestrap-run.service", "");
        detect_units(&r, &found);
        ASSERT_EQ(strv_length(found), 2);
        ASSERT_STREQ(found[0], "nodeadm-config.service");

        _free_ char *mask = xasprintf("%s/etc/systemd/system/nodeadm-config.service", r.dir);
        ASSERT_EQ(symlink("/dev/null", mask), 0);
        detect_units(&r, &found);
        ASSERT_EQ(strv_length(found), 1);
        ASSERT_STREQ(found[0], "nodeadm-run.service");

        run_write(&r, "/etc/systemd/system/nodeadm-run.service", "[Service]\nExecStart=/bin/true\n");
        detect_units(&r, &found);
        ASSERT_EQ(strv_length(found), 1);       /* the unit itself */
        run_write(&r, "/etc/systemd/system/nodeadm-run.service", "");
        detect_units(&r, &found);
        ASSERT_TRUE(!found);                    /* an empty file masks as well */
}

TEST(facts_of_a_plain_container) {
        RUN(r, "none");
        r.options.kubelet_version = "v1.34";
        r.options.containerd_version = "2.0.4-eks1";
        run_ok(&r);
        const Host *h = r.host;
        ASSERT_EQ(h->cpus, 3);                  /* of four, one is offline */
        ASSERT_EQ(h->memory_bytes, 4039448ULL * 1024);
        ASSERT_EQ(h->n_pci + h->n_disks + h->n_nics + h->n_nodes, 0);
        ASSERT_TRUE(!h->product_name && !h->image_credential_provider);
        ASSERT_STREQ(h->kubelet_version, "1.34.0");
        ASSERT_STREQ(h->containerd_version, "2.0.4");
        ASSERT_STREQ(h->instance.type, "m5.large");
        ASSERT_TRUE(strv_contains(h->assumed, "instance.type"));
}

/* ---- the instance ---- */

TEST(instance_facts_are_assumed_without_a_metadata_service) {
        RUN(r, "m5-large");
        run_ok(&r);
        const Host *h = r.host;
        ASSERT_STREQ(h->instance.type, "m5.large");     /* from the firmware, not assumed */
        ASSERT_TRUE(!strv_contains(h->assumed, "instance.type"));
        ASSERT_STREQ(h->instance.id, "i-0123456789abcdef0");
        ASSERT_STREQ(h->instance.region, "us-west-2");
        ASSERT_STREQ(h->instance.zone, "us-west-2a");
        ASSERT_STREQ(h->instance.domain, "amazonaws.com");
        ASSERT_STREQ(h->instance.private_dns_name, "ip-10-0-0-10.us-west-2.compute.internal");
        ASSERT_TRUE(!h->instance.ipv6);
        static const char *const want[] = { "instance.domain", "instance.id", "instance.ipv4", "instance.mac",
                                            "instance.privateDnsName", "instance.region", "instance.zone" };
        ASSERT_EQ(strv_length(h->assumed), ARRAY_SIZE(want));
        for (size_t i = 0; i < ARRAY_SIZE(want); i++)
                ASSERT_STREQ(h->assumed[i], want[i]);
        ASSERT_EQ(ec2_names + ec2_limits, 0);
}

TEST(detection_asks_imds_twice_and_ec2_once) {
        RUN(r, "m5-large");
        Imds imds = { .answers = (const Answer[]){ ANSWERS("m5.large"), {} } };
        r.options.imds = &imds;
        run_ok(&r);
        const Instance *i = &r.host->instance;
        ASSERT_STREQ(i->id, "i-0aaaaaaaaaaaaaaa1");
        ASSERT_STREQ(i->type, "m5.large");
        ASSERT_STREQ(i->region, "eu-west-1");
        ASSERT_STREQ(i->zone, "eu-west-1b");
        ASSERT_STREQ(i->ipv4, "10.1.2.3");
        ASSERT_STREQ(i->mac, "0a:1b:2c:3d:4e:5f");
        ASSERT_STREQ(i->domain, "amazonaws.com");
        ASSERT_STREQ(i->private_dns_name, "ip-10-1-2-3.eu-west-1.compute.internal");
        ASSERT_TRUE(!i->ipv6 && !r.host->assumed);
        ASSERT_EQ(imds.requests, 2);
        ASSERT_EQ(ec2_names, 1);
        ASSERT_EQ(ec2_limits, 0);
        ASSERT_EQ(diag_count(&r.diag, true), 0);
}

TEST(warm_pool_state_warns_only_in_the_run_phase) {
        const struct { PoolState state; const char *text, *warning; } cases[] = {
                { POOL_NONE, NULL, NULL },
                { POOL_PREPARES, "Warmed:Stopped", NULL },
                { POOL_RESUMES, "Warmed:Running", "warm-pool-resumes" },
                { POOL_UNKNOWN, "no answer", "warm-pool-unknown" },
        };
        for (size_t i = 0; i < 3 * ARRAY_SIZE(cases); i++) {
                RUN(r, "m5-large");
                Imds imds = { .answers = (const Answer[]){ ANSWERS("m5.large"), {} } };
                size_t c = i / 3;
                pool_state = cases[c].state;
                pool_text = cases[c].text;
                r.options.imds = &imds;
                r.options.pool = i % 3;         /* 1: in the config phase, 2: in the run phase */
                r.options.joins = i % 3 == 2;
                run_ok(&r);
                ASSERT_EQ(r.host->pool, i % 3 ? cases[c].state : POOL_NONE);
                bool warns = i % 3 == 2 && cases[c].warning;
                ASSERT_EQ(diag_count(&r.diag, true), warns);
                if (warns)
                        ASSERT_STREQ(r.diag.items[0].code, cases[c].warning);
        }
}

/* A child of a process with threads inherits the locks of malloc and dlopen, held for ever. */
TEST(the_disk_process_forks_before_any_thread_starts) {
        RUN(r, "stores");
        Imds imds = { .answers = (const Answer[]){ ANSWERS("m5.large"), {} } };
        use_disks(&r, &imds);
        waits_for_fork = true;
        run_ok(&r);
        waits_for_fork = false;
        ASSERT_STREQ(r.host->instance.private_dns_name, "ip-10-1-2-3.eu-west-1.compute.internal");
        ASSERT_EQ(r.host->disks[3].content.kind, CONTENT_OTHER);
        ASSERT_EQ(forks, 1);
        ASSERT_EQ(threads_at_fork, 1);
}

TEST(the_disk_process_ends_before_the_wait_for_the_name) {
        RUN(r, "stores");
        Imds imds = { .answers = (const Answer[]){ ANSWERS("m5.large"), {} } };
        use_disks(&r, &imds);
        waits_for_fork = waits_for_end = true;
        run_ok(&r);
        waits_for_fork = waits_for_end = false;
        ASSERT_EQ(forks, 1);
        ASSERT_TRUE(!child_is_left);
}

TEST(nothing_forks_without_disks) {
        RUN(r, "stores");
        Imds imds = { .answers = (const Answer[]){ ANSWERS("m5.large"), {} } };
        move_disks(&r, "block", "later");
        use_disks(&r, &imds);
        run_ok(&r);
        ASSERT_TRUE(r.host->storage.looked && r.host->storage.n_mounts > 0);
        ASSERT_STREQ(r.host->instance.private_dns_name, "ip-10-1-2-3.eu-west-1.compute.internal");
        ASSERT_EQ(forks, 0);
}

TEST(unexpected_late_disks_are_probed_when_they_appear) {
        RUN(r, "stores");
        Imds imds = { .answers = (const Answer[]){ ANSWERS("m5.large"), {} } };
        move_disks(&r, "block", "later");
        use_disks(&r, &imds);
        r.options.disks_timeout_usec = USEC_PER_SEC;
        late_disks = &r;
        run_ok(&r);
        late_disks = NULL;
        ASSERT_EQ(r.host->n_disks, 4);
        ASSERT_EQ(r.host->disks[3].content.kind, CONTENT_OTHER);
        ASSERT_EQ(forks, 1);
        ASSERT_EQ(threads_at_fork, 1);
}

TEST(regional_dns_names_are_recognized) {
        static const struct { const char *region, *ipv4, *name; bool is; } tries[] = {
                { "us-west-2",  "10.1.2.3", "ip-10-1-2-3.us-west-2.compute.internal",     true  },
                { "cn-north-1", "10.1.2.3", "ip-10-1-2-3.cn-north-1.compute.internal",    true  },
                { "us-west-2",  "10.1.2.3", "i-0abc.us-west-2.compute.internal",          true  },
                { "us-west-2",  NULL,       "i-0abc.us-west-2.compute.internal",          true  },
                { "us-east-1",  "10.1.2.3", "ip-10-1-2-3.ec2.internal",                   true  },
                { "us-east-1",  "10.1.2.3", "i-0abc.ec2.internal",                        true  },
                { "us-east-1",  "10.1.2.3", "ip-10-1-2-3.us-east-1.compute.internal",     false },
                { "us-east-2",  "10.1.2.3", "ip-10-1-2-3.ec2.internal",                   false },
                { "us-west-2",  "10.1.2.3", "ip-10-1-2-3.us-west-1.compute.internal",     false },
                { "us-west-2",  "10.1.2.3", "ip-10-1-2-3.us-west-2.compute.internal.x",   false },
                { "us-west-2",  "10.1.2.3", "ip-10-1-2-3.x.us-west-2.compute.internal",   false },
                { "us-west-2",  "10.1.2.3", "ip-10-1-2-33.us-west-2.compute.internal",    false },
                { "us-west-2",  "10.1.2.33", "ip-10-1-2-3.us-west-2.compute.internal",    false },
                { "us-west-2",  "10.1.2.3", "ip-10.1.2.3.us-west-2.compute.internal",     false },
                { "us-west-2",  "10.1.2.3", "IP-10-1-2-3.us-west-2.compute.internal",     false },
                { "us-west-2",  "10.1.2.3", "i-0ab.us-west-2.compute.internal",           false },
                { "us-west-2",  "10.1.2.3", "ip-10-1-2-3us-west-2.compute.internal",      false },
                { "us-west-2",  NULL,       "ip-10-1-2-3.us-west-2.compute.internal",     true  },      /* IPv6 clusters */
                { "us-east-1",  NULL,       "ip-10-1-2-3.ec2.internal",                   true  },
                { "us-west-2",  NULL,       "ip-10-1-2-3.us-west-1.compute.internal",     false },
                { "us-west-2",  NULL,       "ip-10-1-2.us-west-2.compute.internal",       false },
                { "us-west-2",  NULL,       "ip-10-1-2-300.us-west-2.compute.internal",   false },
                { "us-west-2",  NULL,       "10-1-2-3.us-west-2.compute.internal",        false },
                { "us-west-2",  NULL,       "ip-.us-west-2.compute.internal",             false },
                { "us-west-2",  NULL,       ".us-west-2.compute.internal",                false },
                { "us-west-2",  "10.1.2.3", "ip-10-1-2-3.corp.example",                   false },
                { "us-west-2",  "10.1.2.3", "ip-10-1-2-3",                                false },
                { "us-west-2",  "10.1.2.3", "",                                           false },
        };
        for (size_t i = 0; i < ARRAY_SIZE(tries); i++) {
                Instance one = { .id = (char *)"i-0abc", .region = (char *)tries[i].region, .ipv4 = (char *)tries[i].ipv4 };
                if (name_is_regional(&one, tries[i].name) != tries[i].is)
                        FAIL("%s in %s", tries[i].name, tries[i].region);
        }
}

/* Runs again with the status of the previous run. */
static void run_next(Run *r) {
        json_t *status = host_status(r->host);
        json_decref(r->options.cached_status);
        host_free(r->host);
        diag_done(&r->diag);
        r->diag = (Diag){};
        r->host = NULL;
        r->options.cached_status = status;
        run_ok(r);
}

#define LOCAL_NAME "ip-10-1-2-3.eu-west-1.compute.internal"

TEST(the_node_name_is_assumed_until_ec2_answers) {
        RUN(r, "m5-large");
        Imds imds = { .answers = (const Answer[]){ ANSWERS("m5.large"), { "meta-data/local-hostname", LOCAL_NAME "\n" }, {} } };
        r.options.imds = &imds;
        r.options.cached_status = NULL;
        r.options.name_again = true;
        ec2_silent = 2;
        ec2_names_again = 0;
        run_ok(&r);
        ASSERT_STREQ(r.host->instance.private_dns_name, LOCAL_NAME);
        ASSERT_TRUE(r.host->name_assumed && !r.host->name_before && strv_contains(r.host->assumed, "instance.privateDnsName"));
        ASSERT_EQ(diag_count(&r.diag, true), 1);
        ASSERT_EQ(imds.requests, 3);
        ASSERT_EQ(ec2_names_again, 0);
        r.options.name_again = false;   /* the devices phase */
        run_next(&r);
        ASSERT_TRUE(r.host->name_assumed && !r.host->name_before && strv_contains(r.host->assumed, "instance.privateDnsName"));
        ASSERT_EQ(ec2_names_again, 0);
        ASSERT_EQ(diag_count(&r.diag, true), 0);
        r.options.name_again = true;    /* the run phase, without an answer */
        run_next(&r);
        ASSERT_TRUE(r.host->name_assumed && !r.host->name_before);
        ASSERT_EQ(ec2_names_again, 1);
        ASSERT_EQ(diag_count(&r.diag, true), 1);
        run_next(&r);                   /* the run phase, with an answer */
        ASSERT_TRUE(!r.host->name_assumed && !r.host->assumed);
        ASSERT_STREQ(r.host->name_before, LOCAL_NAME);
        ASSERT_STREQ(r.host->instance.private_dns_name, LOCAL_NAME);
        ASSERT_EQ(ec2_names_again, 2);
        unsigned asked = ec2_names;
        run_next(&r);
        ASSERT_TRUE(!r.host->name_before);
        ASSERT_EQ(ec2_names, asked);
}

TEST(strict_node_name_forbids_an_assumed_name) {
        RUN(r, "m5-large");
        Imds imds = { .answers = (const Answer[]){ ANSWERS("m5.large"), { "meta-data/local-hostname", LOCAL_NAME }, {} } };
        r.options.imds = &imds;
        ec2_silent = 1;
        run_ok(&r);
        ASSERT_TRUE(r.host->name_assumed);
        r.config.instance.strict_node_name = true;
        ec2_silent = 1;
        ec2_names_again = 0;
        unsigned asked = ec2_names;
        run_next(&r);
        ASSERT_TRUE(!r.host->name_assumed && !r.host->name_before);
        ASSERT_EQ(ec2_names, asked + 1);
        ASSERT_EQ(ec2_names_again, 0);
        ec2_silent = 0;
}

TEST(instance_id_as_name_needs_no_ec2) {
        RUN(r, "m5-large");
        Imds imds = { .answers = (const Answer[]){ ANSWERS("m5.large"), {} } };
        r.options.imds = &imds;
        r.config.gates.instance_id_node_name = true;
        run_ok(&r);
        ASSERT_TRUE(!r.host->instance.private_dns_name);
        ASSERT_EQ(ec2_names, 0);
}

TEST(ipv6_cluster_uses_the_first_ipv6_address) {
        RUN(r, "m5-large");
        Imds imds = { .answers = (const Answer[]){ ANSWERS("m5.large"), {} } };
        r.options.imds = &imds;
        r.config.cluster.cidr = (char *)"fd30:1c53:5f8a::/108";
        run_ok(&r);
        ASSERT_STREQ(r.host->instance.ipv6, "2001:db8::5");
        ASSERT_EQ(imds.requests, 3);
}

#define NO_ADDRESS "{\"instanceId\": \"i-1\", \"instanceType\": \"m5.large\", \"region\": \"r\", \"availabilityZone\": \"z\"}"

TEST(ipv6_cluster_needs_no_ipv4_address) {
        RUN(r, "m5-large");
        Imds imds = { .answers = (const Answer[]){ { DOCUMENT_PATH, NO_ADDRESS }, ANSWERS("m5.large"), {} } };
        r.options.imds = &imds;
        r.config.cluster.cidr = (char *)"fd30:1c53:5f8a::/108";
        run_ok(&r);
        ASSERT_STREQ(r.host->instance.ipv6, "2001:db8::5");
        ASSERT_TRUE(!r.host->instance.ipv4);
        ASSERT_EQ(imds.requests, 4);
}

TEST(imds_gives_the_ipv4_address_that_the_document_lacks) {
        RUN(r, "m5-large");
        Imds imds = { .answers = (const Answer[]){ { DOCUMENT_PATH, NO_ADDRESS }, { "meta-data/local-ipv4", "10.9.8.7" }, ANSWERS("m5.large"), {} } };
        Imds none = { .answers = (const Answer[]){ { DOCUMENT_PATH, NO_ADDRESS }, ANSWERS("m5.large"), {} } };
        r.options.imds = &imds;
        run_ok(&r);
        ASSERT_STREQ(r.host->instance.ipv4, "10.9.8.7");
        r.options.imds = &none;
        host_free(r.host);
        r.host = NULL;
        run_fails(&r, CAUSE_FACTS, "no IPv4 address", "spec.cluster.cidr");
}

TEST(ipv6_cluster_on_an_ipv4_instance_is_an_error) {
        RUN(r, "m5-large");
        Imds imds = { .answers = (const Answer[]){ { DOCUMENT_PATH, DOCUMENT("m5.large") }, { "meta-data/mac", "0a:00:00:00:00:09" }, {} } };
        r.options.imds = &imds;
        r.config.cluster.cidr = (char *)"fd30:1c53:5f8a::/108";
        run_fails(&r, CAUSE_FACTS, "no IPv6 address", "spec.cluster.cidr");
}

/* nodestrap asks the metadata service only if the region may be in a partition that the table lacks. */
TEST(imds_gives_the_domain_of_unknown_partitions_only) {
        static const struct { const char *region, *domain; bool asks; } tries[] = {
                { "us-west-2",      "amazonaws.com",    false }, { "ap-southeast-1", "amazonaws.com",    false },
                { "eu-central-2",   "amazonaws.com",    false }, { "us-gov-west-1",  "amazonaws.com",    false },
                { "cn-north-1",     "amazonaws.com.cn", false }, { "us-isob-east-1", "sc2s.sgov.gov",    false },
                { "eusc-de-east-1", "amazonaws.eu",     false }, { "us-isox-east-1", "example.gov",      true  },
                { "local",          "example.gov",      true  }, { "us-",            "example.gov",      true  },
                { "us-isox-east-1", NULL,               true  },
        };
        for (size_t k = 0; k < ARRAY_SIZE(tries); k++) {
                RUN(r, "m5-large");
                _free_ char *document = xasprintf("{\"instanceId\": \"i-1\", \"instanceType\": \"m5.large\", \"region\": \"%s\", "
                                                  "\"availabilityZone\": \"z\", \"privateIp\": \"10.0.0.1\"}", tries[k].region);
                Imds imds = { .answers = (const Answer[]){
                        { DOCUMENT_PATH, document }, { "meta-data/mac", "0a:00:00:00:00:09\n" },
                        { tries[k].domain ? "meta-data/services/domain" : "none", "example.gov" }, {} } };
                r.options.imds = &imds;
                run_ok(&r);
                ASSERT_STREQ(r.host->instance.domain, tries[k].domain ?: "amazonaws.com");      /* none: 404 */
                ASSERT_EQ(imds.requests, 2 + tries[k].asks);
        }
}

TEST(damaged_identity_documents_are_errors) {
        static const char *const damaged[] = {
                "", "{", "[]", "{}", "null", "<html>", "{\"instanceId\": 7}", "{\"instanceId\": \"\"}",
                "{\"instanceId\": \"i-1\", \"instanceType\": \"m5\\nx\", \"region\": \"r\", \"availabilityZone\": \"z\", \"privateIp\": \"1\"}",
                "{\"instanceId\": \"i-1\", \"instanceType\": \"m5.large\", \"region\": \"r\", \"privateIp\": \"1\"}",
        };
        RUN(r, "m5-large");
        for (size_t i = 0; i < ARRAY_SIZE(damaged); i++) {
                Imds imds = { .answers = (const Answer[]){ { DOCUMENT_PATH, damaged[i] }, {} } };
                r.options.imds = &imds;
                run_fails(&r, CAUSE_FACTS, "instance identity document", "it is");
                diag_done(&r.diag);
        }
}

TEST(silent_or_missing_metadata_is_an_error) {
        RUN(r, "m5-large");
        Imds silent = { .answers = (const Answer[]){ { DOCUMENT_PATH, NULL }, {} } }, absent = { .answers = (const Answer[]){ {} } };
        Imds no_mac = { .answers = (const Answer[]){ { DOCUMENT_PATH, DOCUMENT("m5.large") }, { "meta-data/mac", "two words" }, {} } };
        r.options.imds = &silent;
        run_fails(&r, CAUSE_FACTS, "no answer", DOCUMENT_PATH);
        diag_done(&r.diag);
        r.options.imds = &absent;
        run_fails(&r, CAUSE_FACTS, "404", "document");
        diag_done(&r.diag);
        r.options.imds = &no_mac;
        run_fails(&r, CAUSE_FACTS, "meta-data/mac", "not exactly one word");
}

/* ---- the cache ---- */

TEST(cached_status_replaces_requests_to_ec2) {
        RUN(r, "m5-large");
        Imds imds = { .answers = (const Answer[]){ ANSWERS("x9.huge"), {} } };
        r.options.imds = &imds;
        run_ok(&r);
        ASSERT_EQ(ec2_limits, 1);
        json_t *status = host_status(r.host);
        const json_t *instance = json_object_get(status, "instance");
        ASSERT_STREQ(json_string_value(json_object_get(instance, "id")), "i-0aaaaaaaaaaaaaaa1");
        ASSERT_STREQ(json_string_value(json_object_get(instance, "availabilityZone")), "eu-west-1b");
        ASSERT_STREQ(json_string_value(json_object_get(instance, "privateDnsName")), "ip-10-1-2-3.eu-west-1.compute.internal");
        ASSERT_STREQ(json_string_value(json_object_get(status, "kubeletVersion")), "v1.33.4");
        ASSERT_EQ(json_integer_value(json_object_get(json_object_get(status, "nodestrap"), "enis")), 15);

        RUN(again, "m5-large");
        imds.requests = 0;
        again.options.imds = &imds;
        again.options.cached_status = status;
        run_ok(&again);
        ASSERT_EQ(imds.requests, 1);            /* the nodeadm format has no field for the address */
        ASSERT_EQ(ec2_names + ec2_limits, 0);
        ASSERT_STREQ(again.host->instance.ipv4, "10.1.2.3");
        ASSERT_STREQ(again.host->instance.domain, "amazonaws.com");
        ASSERT_EQ(again.host->max_enis, 15);
        json_t *first = host_to_json(r.host), *second = host_to_json(again.host);
        ASSERT_TRUE(json_equal(first, second));
        json_decref(first);
        json_decref(second);
}

TEST(the_nodeadm_cache_is_completed_from_imds) {
        RUN(r, "m5-large");
        Imds imds = { .answers = (const Answer[]){ ANSWERS("m5.large"), {} } };
        r.options.imds = &imds;
        r.options.cached_status = json_pack("{s:{s:s, s:s, s:s, s:s, s:s, s:s}}", "instance",
                                            "id", "i-0aaaaaaaaaaaaaaa1", "region", "eu-west-1", "type", "m5.large",
                                            "availabilityZone", "eu-west-1b", "mac", "0a:1b:2c:3d:4e:5f", "privateDnsName", "ip-cached");
        run_ok(&r);
        ASSERT_STREQ(r.host->instance.private_dns_name, "ip-cached");
        ASSERT_STREQ(r.host->instance.ipv4, "10.1.2.3");
        ASSERT_EQ(ec2_names, 0);
        ASSERT_EQ(imds.requests, 1);            /* the identity document, for the address */
}

TEST(the_cache_of_another_instance_is_not_used) {
        RUN(r, "m5-large");
        Imds imds = { .answers = (const Answer[]){ ANSWERS("m5.large"), {} } };
        r.options.imds = &imds;
        r.options.cached_status = json_pack("{s:{s:s, s:s}}", "instance", "id", "i-0bbbbbbbbbbbbbbbb",
                                            "privateDnsName", "ip-of-another");
        run_ok(&r);
        ASSERT_STREQ(r.host->instance.private_dns_name, "ip-10-1-2-3.eu-west-1.compute.internal");
        ASSERT_EQ(diag_count(&r.diag, true), 1);
        ASSERT_STREQ(r.diag.items[0].code, "stale-cache");
}

/* ---- inputs of maxPods ---- */

TEST(ec2_gives_the_eni_limits_of_an_unknown_type) {
        RUN(r, "m5-large");
        Imds imds = { .answers = (const Answer[]){ ANSWERS("x9.huge"), {} } };
        r.options.imds = &imds;
        run_ok(&r);
        ASSERT_EQ(ec2_limits, 1);
        ASSERT_TRUE(r.host->eni_limits_known);
        ASSERT_EQ(r.host->max_enis, 15);
        ASSERT_EQ(r.host->addresses_per_eni, 50);
        ASSERT_EQ(diag_count(&r.diag, true), 0);
}

TEST(unknown_eni_limits_keep_the_reason_from_ec2) {
        RUN(r, "m5-large");
        Imds imds = { .answers = (const Answer[]){ ANSWERS("x9.huge"), {} } };
        r.options.imds = &imds;
        ec2_limits_result = -EACCES;
        run_ok(&r);
        ASSERT_TRUE(!r.host->eni_limits_known);
        ASSERT_EQ(diag_count(&r.diag, false), 0);
        ASSERT_EQ(diag_count(&r.diag, true), 0);
        ASSERT_CONTAINS(r.host->eni_limits_why, "UnauthorizedOperation");
}

/* ---- damage ---- */

TEST(damaged_files_are_errors_with_their_path) {
        static const struct { const char *path, *text; } damage[] = {
                { "/proc/meminfo", "MemFree: 1 kB\n" },
                { "/proc/meminfo", "MemTotal: lots\n" },
                { "/proc/meminfo", "MemTotal: 99999999999999999999 kB\n" },
                { "/sys/devices/system/cpu/online", "0-" },
                { "/sys/devices/system/cpu/online", "3-1" },
                { "/sys/devices/system/cpu/online", "0,,1" },
                { "/sys/devices/system/cpu/online", "all" },
                { "/sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: kB\n" },
                { "/sys/bus/pci/devices/0000:00:04.0/uevent", "" },
                { "/sys/bus/pci/devices/0000:00:04.0/uevent", "PCI_CLASS=10802\nPCI_ID=1D0F\n" },
                { "/sys/bus/pci/devices/0000:00:04.0/uevent", "PCI_CLASS=0x10802\nPCI_ID=1D0F:8061\n" },
                { "/sys/bus/pci/devices/0000:00:04.0/numa_node", "minus one" },
                { "/sys/block/nvme0n1/size", "many" },
                { "/sys/block/nvme0n1/size", "99999999999999999999" },
                { "/sys/class/net/ens5/mtu", "-1" },
                { "/etc/eks/kubelet-version.txt", "Kubernetes\n" },
                { "/etc/eks/containerd-version.txt", "containerd 2.x\n" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(damage); i++) {
                RUN(r, "m5-large");
                run_write(&r, damage[i].path, damage[i].text);
                run_fails(&r, CAUSE_FACTS, damage[i].path, "not valid");
        }
}

TEST(missing_files_are_errors_with_their_path) {
        static const char *const missing[] = { "/proc/meminfo", "/sys/bus/pci/devices/0000:00:04.0/uevent", "/sys/block/nvme0n1/size",
                                               "/sys/class/net/ens5/address", "/sys/class/net/ens5/mtu" };
        for (size_t i = 0; i < ARRAY_SIZE(missing); i++) {
                RUN(r, "m5-large");
                ASSERT_EQ(root_remove(r.root, missing[i]), 1);
                run_fails(&r, CAUSE_FACTS, missing[i], "No such file");
        }
}

TEST(a_pci_function_that_vanishes_meanwhile_is_ignored) {
        RUN(r, "m5-large");
        _free_ char *link = xasprintf("%s/sys/bus/pci/devices/0000:00:1f.0", r.dir);
        ASSERT_EQ(symlink("../../../devices/pci0000:00/0000:00:1f.0", link), 0);
        run_ok(&r);
        ASSERT_EQ(r.host->n_pci, 5);
        ASSERT_EQ(diag_count(&r.diag, false), 0);
}

#define RENAMED 40
typedef struct Renaming { char *directory; const char *from, *to; bool over; } Renaming;
static void *rename_all(void *userdata) {
        Renaming *r = userdata;
        for (unsigned i = 0; i < RENAMED; i++) {
                _free_ char *from = xasprintf("%s/%s%u", r->directory, r->from, i), *to = xasprintf("%s/%s%u", r->directory, r->to, i);
                ASSERT_EQ(rename(from, to), 0);
        }
        __atomic_store_n(&r->over, true, __ATOMIC_RELEASE);
        return NULL;
}

TEST(detection_tolerates_interfaces_renamed_meanwhile) {
        RUN(r, "none");
        _free_ char *net = xasprintf("%s/sys/class/net", r.dir);
        pthread_t thread;
        for (unsigned i = 0; i < RENAMED; i++) {
                _free_ char *address = xasprintf("/sys/class/net/eth%u/address", i), *mtu = xasprintf("/sys/class/net/eth%u/mtu", i);
                _free_ char *device = xasprintf("%s/eth%u/device", net, i);
                run_write(&r, address, "0a:00:00:00:00:01\n");
                run_write(&r, mtu, "9001\n");
                ASSERT_EQ(symlink("../../../0000:00:05.0", device), 0);
        }
        for (int round = 0; round < 30; round++) {      /* each interface gets another name once, as udev does it */
                Renaming renaming = { net, round % 2 ? "ens" : "eth", round % 2 ? "eth" : "ens", false };
                ASSERT_EQ(pthread_create(&thread, NULL, rename_all, &renaming), 0);
                while (!__atomic_load_n(&renaming.over, __ATOMIC_ACQUIRE)) {
                        Host h = {};
                        ASSERT_OK(detect_nics(r.root, &h, &r.diag));
                        nics_clear(&h);
                }
                ASSERT_EQ(pthread_join(thread, NULL), 0);
        }
}

TEST(detection_tolerates_disks_detached_meanwhile) {
        RUN(r, "none");
        _free_ char *block = xasprintf("%s/sys/block", r.dir);
        pthread_t thread;
        for (unsigned i = 0; i < RENAMED; i++) {
                _free_ char *model = xasprintf("/sys/block/nvme%un1/device/model", i), *size = xasprintf("/sys/block/nvme%un1/size", i);
                _free_ char *from = xasprintf("%s/nvme%un1", block, i), *to = xasprintf("%s/nvme%u", block, i);
                run_write(&r, model, "Amazon Elastic Block Store\n");
                run_write(&r, size, "16777216\n");
                ASSERT_EQ(rename(from, to), 0);
        }
        for (int round = 0; round < 30; round++) {      /* each disk disappears under its name once */
                Renaming renaming = { block, round % 2 ? "sd" : "nvme", round % 2 ? "nvme" : "sd", false };
                ASSERT_EQ(pthread_create(&thread, NULL, rename_all, &renaming), 0);
                while (!__atomic_load_n(&renaming.over, __ATOMIC_ACQUIRE)) {
                        Host h = {};
                        ASSERT_OK(detect_disks(r.root, &h, &r.diag));
                        disks_clear(&h);
                }
                ASSERT_EQ(pthread_join(thread, NULL), 0);
        }
}

TEST(missing_version_files_are_errors_that_name_the_options) {
        RUN(r, "none");
        run_fails(&r, CAUSE_FACTS, "--kubelet-version", "/etc/eks/kubelet-version.txt");
        ASSERT_EQ(diag_count(&r.diag, false), 2);
        ASSERT_CONTAINS(r.diag.items[1].text, "--containerd-version");
}

TEST(invalid_versions_are_refused) {
        static const char *const bad[] = { "", "v", "latest", "1", "1.", "1.2.", "1.2.3.4", "1.33.4 ", "1.x", "1.2.3;", "12345678.1.1" };
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                RUN(r, "none");
                r.options.containerd_version = "2.1.5";
                r.options.kubelet_version = bad[i];
                run_fails(&r, CAUSE_USAGE, "--kubelet-version", "as a version; write one such as ");
        }
}

/* If no file names the version on the running system, nodestrap asks the programs. */
TEST(kubelet_itself_gives_its_version_if_no_file_has_it) {
        static const struct { const char *script, *version, *error; } programs[] = {
                { "echo Kubernetes v1.32.9-eks-113cf36", "1.32.9", NULL },
                { "echo nothing; echo no config >&2; exit 1", NULL, "status 1 and printed no version: no config" },
                { "exit 0", NULL, "status 0" },
                { NULL, NULL, "does not run" },
        };
        RUN(r, "none");
        _free_ char *path = xasprintf("%s/bin:%s", r.dir, getenv("PATH")), *old = xstrdup(getenv("PATH"));
        size_t n = ARRAY_SIZE(programs) - (TRANSLATED_BY("") ? 1 : 0);    /* test.h says why */
        for (size_t i = 0; i < n; i++) {
                _cleanup_(root_freep) Root *fixture = r.root;
                if (programs[i].script) {
                        _free_ char *script = xasprintf("#!/bin/sh\n%s\n", programs[i].script);
                        ASSERT_TRUE(root_replace(fixture, "/bin/kubelet", script, strlen(script), 0755) >= 0);
                } else
                        ASSERT_EQ(root_remove(fixture, "/bin/kubelet"), 1);
                ASSERT_OK(root_new("/", &r.root));
                if (root_exists(r.root, "/etc/eks/kubelet-version.txt") == 0) {
                        setenv("PATH", programs[i].script ? path : "/nonexistent", 1);
                        r.options.containerd_version = "2.1.5";
                        if (programs[i].version) {
                                run_ok(&r);
                                ASSERT_STREQ(r.host->kubelet_version, programs[i].version);
                        } else
                                run_fails(&r, CAUSE_FACTS, programs[i].error, "/etc/eks/kubelet-version.txt");
                        setenv("PATH", old, 1);
                }
                r.host = host_free(r.host);
                diag_done(&r.diag);
                root_free(r.root);
                r.root = TAKE_PTR(fixture);
        }
}

/* ---- Outposts ---- */

TEST(api_servers_of_an_outpost_are_resolved) {
        RUN(r, "m5-large");
        Imds imds = { .answers = (const Answer[]){ ANSWERS("m5.large"), {} } };
        r.options.imds = &imds;
        r.config.cluster.outpost = true;
        r.config.cluster.endpoint = (char *)"https://127.0.0.1:6443/";
        run_ok(&r);
        ASSERT_EQ(strv_length(r.host->api_server_addresses), 1);
        ASSERT_STREQ(r.host->api_server_addresses[0], "127.0.0.1");
}

TEST(an_api_server_that_does_not_resolve_is_an_error) {
        RUN(r, "m5-large");
        Imds imds = { .answers = (const Answer[]){ ANSWERS("m5.large"), {} } };
        r.options.imds = &imds;
        r.config.cluster.outpost = true;
        r.config.cluster.endpoint = (char *)"https://not a name/";
        run_fails(&r, CAUSE_FACTS, "spec.cluster.apiServerEndpoint", "does not resolve");
        ASSERT_TRUE(!strstr(diag_first_error(&r.diag)->text, "not a name"));    /* the message has no value of the configuration */
}

/* ---- models ---- */

#define TYPE(gpu, count, mib) \
        "{\"InstanceTypes\": [{\"InstanceType\": \"x1.large\", \"VCpuInfo\": {\"DefaultVCpus\": 8}, \"MemoryInfo\": {\"SizeInMiB\": 16384}," \
        "\"ProcessorInfo\": {\"SupportedArchitectures\": [\"arm64\"]}, \"NetworkInfo\": {\"MaximumNetworkCards\": 2, \"NetworkCards\":" \
        "[{\"MaximumNetworkInterfaces\": 4}, {\"MaximumNetworkInterfaces\": 1}], \"Ipv4AddressesPerInterface\": 15, \"EfaInfo\": {\"MaximumEfaInterfaces\": 2}}," \
        "\"InstanceStorageInfo\": {\"Disks\": [{\"Count\": 3, \"SizeInGB\": 950}]}, \"GpuInfo\": {\"Gpus\": [{\"Name\": \"" gpu "\", \"Manufacturer\": \"NVIDIA\"," \
        "\"Count\": " count ", \"MemoryInfo\": {\"SizeInMiB\": " mib "}}]}}]}"

TEST(an_instance_type_is_learned_from_an_ec2_answer) {
        static const struct { const char *text, *model, *nvswitch; } cases[] = {
                { TYPE("A100", "8", "40960"),  "nvidia-a100-40gb", "pci" },   { TYPE("A100", "8", "81920"),  "nvidia-a100-80gb", "pci" },
                { TYPE("H200", "8", "144384"), "nvidia-h200", "pci" },        { TYPE("H100", "1", "81920"),  "nvidia-h100", "none" },
                { TYPE("B300", "8", "275000"), "nvidia-b300", "nvl5-host" },  { TYPE("GB200", "4", "190000"), "nvidia-gb200", "nvl5-offhost" },
                { TYPE("T4g", "2", "16384"),   "nvidia-t4g", "none" },        { TYPE("L40S", "8", "45776"),  "nvidia-l40s", "none" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                unsigned enis = 0, addresses = 0;
                _cleanup_(diag_done) Diag diag = {};
                ASSERT_OK(instance_types_learn(cases[i].text, strlen(cases[i].text), "types", &diag));
                const InstanceType *t = instance_type_find("x1.large");
                ASSERT_STREQ(t->gpu_model, cases[i].model);
                ASSERT_STREQ(t->nvswitch, cases[i].nvswitch);
                ASSERT_STREQ(t->arch, "arm64");
                ASSERT_TRUE(t->vcpus == 8 && t->memory_gib == 16 && t->disks == 3 && t->disk_gb == 950 && t->max_efa == 2);
                ASSERT_TRUE(eni_limits_find("x1.large", &enis, &addresses) && enis == 4 && addresses == 15);
                ASSERT_EQ(network_cards_find("x1.large"), 2);
        }
        static const struct { const char *text, *why; } bad[] = {
                { "", "is not the output" }, { "{}", "is not the output" }, { "{\"InstanceTypes\": []}", "is not the output" },
                { "{\"InstanceTypes\": [1]}", "InstanceTypes[0]: " }, { TYPE("X1", "8", "1"), "nodestrap does not know this GPU" },
                { TYPE("H100", "-1", "1"), "is not valid" }, { TYPE("H100", "99999999", "1"), "is not valid" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                _cleanup_(diag_done) Diag diag = {};
                ASSERT_ERROR(instance_types_learn(bad[i].text, strlen(bad[i].text), "types", &diag), EINVAL);
                ASSERT_CONTAINS(diag.items[0].text, bad[i].why);
        }
        ASSERT_TRUE(!instance_type_find("x1.large"));
}

TEST(every_type_of_the_table_has_a_model) {
        size_t n = n_instance_types;
        const InstanceType *all = instance_types;
        RUN(r, "none");
        for (size_t i = 0; i < n; i++) {
                r.options.instance_type = all[i].name;
                run_ok(&r);
                const Host *h = r.host;
                ASSERT_TRUE(h->modelled && h->type == &all[i] && h->assumed);
                ASSERT_TRUE(h->cpus > 0 && (all[i].vcpus == 0 || h->cpus == all[i].vcpus));
                ASSERT_TRUE(h->kubelet_version && h->containerd_version && h->instance.id && h->instance.private_dns_name);
                if (*all[i].gpu_devices)
                        ASSERT_EQ(count_pci(h, 0x10de, 0x0302), all[i].gpus ?: 1);
                else
                        ASSERT_EQ(count_pci(h, 0x10de, 0x0302), 0);
                ASSERT_EQ(count_disks(h, DISK_INSTANCE_STORE, false), all[i].disks < 0 ? 1 : all[i].disks);
                if (all[i].max_efa >= 0)
                        ASSERT_EQ(count_driver(h, "efa"), all[i].max_efa);
                ASSERT_EQ(count_pci(h, 0x10de, 0x0680) > 0, streq(all[i].nvswitch, "pci"));
                static const struct { const char *word; GpuClass class; } classes[] = {
                        { "none", GPU_CLASS_SINGLE }, { "pci", GPU_CLASS_NVSWITCH }, { "nvl5-host", GPU_CLASS_NVLINK5 }, { "nvl5-offhost", GPU_CLASS_TRAY },
                };
                for (size_t k = 0; k < ARRAY_SIZE(classes); k++)
                        if (streq(all[i].nvswitch, classes[k].word))
                                ASSERT_EQ(h->gpus.class, *all[i].gpu_devices ? classes[k].class : GPU_CLASS_NONE);
                ASSERT_TRUE(!h->gpus.doubt && h->n_shortfalls == 0 && !h->gpus.model == !*all[i].gpu_devices);
                ASSERT_EQ(h->n_nodes, all[i].numa_nodes > 0 ? all[i].numa_nodes : 1);
                ASSERT_TRUE(h->n_pools >= 2 && h->page_size == 2 << 20);
                r.host = host_free(r.host);
        }
        ASSERT_EQ(ec2_names + ec2_limits, 0);
}

TEST(model_of_a_gb200) {
        RUN(r, "none");
        r.options.instance_type = "p6e-gb200.36xlarge";
        r.options.kubelet_version = "1.34.1";
        run_ok(&r);
        const Host *h = r.host;
        ASSERT_STREQ(h->kubelet_version, "1.34.1");
        ASSERT_TRUE(!strv_contains(h->assumed, "programs.kubelet"));
        ASSERT_TRUE(strv_contains(h->assumed, "programs.containerd"));
        ASSERT_TRUE(strv_contains(h->assumed, "instance.id"));
        ASSERT_TRUE(!strv_contains(h->assumed, "instance.type"));
        ASSERT_STREQ(h->arch, "aarch64");
        ASSERT_EQ(h->cpus, 144);
        ASSERT_EQ(h->memory_bytes, 960ULL << 30);
        ASSERT_EQ(h->disks[1].bytes, 7500000000000ULL);
        ASSERT_EQ(count_driver(h, "efa"), 16);
        ASSERT_TRUE(h->nvidia_runtime);
        ASSERT_TRUE(!h->eni_limits_known);
        ASSERT_CONTAINS(r.host->eni_limits_why, "EC2 was not asked");
}

TEST(model_of_an_ordinary_type) {
        RUN(r, "none");
        r.options.instance_type = "c6i.4xlarge";
        run_ok(&r);
        ASSERT_EQ(r.host->cpus, 16);
        ASSERT_TRUE(strv_contains(r.host->assumed, "cpus"));
        ASSERT_TRUE(r.host->eni_limits_known && !r.host->nvidia_runtime);
        ASSERT_EQ(r.host->n_disks, 1);
}

TEST(a_model_without_cpu_count_still_has_a_node_with_cpus) {
        RUN(r, "none");
        r.options.instance_type = "m5.metal";
        run_ok(&r);
        ASSERT_EQ(r.host->cpus, 0);
        ASSERT_EQ(r.host->n_nodes, 1);
        ASSERT_TRUE(r.host->nodes[0].cpus > 0);         /* not a node with memory only */
}

TEST(an_unknown_type_is_an_error_that_names_the_nearest) {
        RUN(r, "none");
        r.options.instance_type = "p5.48xlrage";
        run_fails(&r, CAUSE_USAGE, "--instance-type", "p5.48xlarge");
}

TEST(two_detections_give_the_same_json) {
        RUN(r, "p5-48xlarge");
        run_ok(&r);
        json_t *facts = host_to_json(r.host);
        ASSERT_EQ(json_integer_value(json_object_get(facts, "cpus")), 192);
        const json_t *gpu = NULL, *d;
        size_t i, n = 0, addresses = 0;
        json_array_foreach(json_object_get(facts, "pci"), i, d) {
                const char *list = json_string_value(json_object_get(d, "addresses"));
                n += (size_t)json_integer_value(json_object_get(d, "count"));
                for (addresses++; (list = strchr(list, ' ')); list++)
                        addresses++;
                if (streq(json_string_value(json_object_get(d, "class")), "030200"))
                        gpu = d;
        }
        ASSERT_EQ(n, r.host->n_pci);
        ASSERT_EQ(addresses, r.host->n_pci);
        ASSERT_STREQ(json_string_value(json_object_get(gpu, "id")), "10de:2330");
        ASSERT_STREQ(json_string_value(json_object_get(gpu, "subsystem")), "10de:16c1");
        Host *first = TAKE_PTR(r.host);
        run_ok(&r);
        json_t *again = host_to_json(r.host);
        ASSERT_TRUE(json_equal(facts, again));
        host_free(first);
        json_decref(facts);
        json_decref(again);
}

TEST_MAIN
