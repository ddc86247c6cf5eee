/* SPDX-License-Identifier: Apache-2.0
 * Leftovers of the machine that the image was made on, and of other bootstrappers. On a running machine
 * most of them are its proper state, so this does not look for them. */
#include "doctor/look.h"

#include "base/paths.h"
#include "host/detect.h"

#define MAX_ENTRIES 1024u
#define SHOWN       4u /* paths in a message */

static bool has_drop_in(const Root *root, const char *unit) {
        static const char folders[][32] = { "/etc/systemd/system", "/usr/lib/systemd/system",
                                            "/usr/local/lib/systemd/system", "/lib/systemd/system" };
        for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
                _free_ char *path = xasprintf("%s/%s.d/10-nodestrap.conf", folders[i], unit), *target = NULL;
                if (root_exists(root, path) > 0 &&
                    (root_read_link(root, path, &target) < 0 || !streq(target, "/dev/null")))
                        return true;
        }
        return false;
}

#define PROGRAM "/usr/bin/nodestrap"
static const char *const theirs[] = { "nodeadm-config.service", "nodeadm-run.service" };
static const char *const ours[] = { "nodestrap-config.service", "nodestrap-run.service" };

/* Neither unit alone makes a node. */
static bool are_enabled(const Look *l, const char *const units[static 2]) {
        return unit_exists(l, units[0]) && unit_is_enabled(l, units[0]) && unit_exists(l, units[1]) &&
               unit_is_enabled(l, units[1]);
}

static bool they_call_us(const Look *l) {
        return are_enabled(l, theirs) && unit_starts(l, theirs[0], PROGRAM) &&
               unit_starts(l, theirs[1], PROGRAM);
}

void image_settle(const Image *image, Needs *needs) {
        Checks none = {};
        _cleanup_(look_end) Look l = look_begin(image, &none);
        if (they_call_us(&l))
                return;
        for (size_t i = 0; i < needs->n; i++) {
                Need *n = &needs->items[i];
                if (n->kind != NEED_UNIT || n->step)
                        continue;
                n->optional = false;
                n->cause = CAUSE_INIT;
        }
}

/* look_unit() reports our units, but not that those of nodeadm do not call us. */
static void search_others(const Look *l) {
        _free_ char *closed = unit_closed(l, ours[0]);
        if (closed || are_enabled(l, ours) || !unit_exists(l, theirs[1]) || they_call_us(l))
                return;
        bool enabled = are_enabled(l, theirs);
        Check *c = checks_add(l->checks, CHECK_FAILED, "bootstrappers", "nodeadm and nodestrap",
                              enabled ? theirs[1] : NULL);
        if (enabled)
                check_tell(c, NULL,
                           "the enabled nodeadm units do not call " PROGRAM ", so no unit "
                           "runs nodestrap: systemctl disable %s %s; systemctl enable %s "
                           "nodestrap-devices.service %s",
                           theirs[0], theirs[1], ours[0], ours[1]);
        else
                check_tell(c, NULL,
                           "neither nodeadm nor nodestrap units are enabled, so nothing sets up the node: "
                           "run systemctl enable %s nodestrap-devices.service %s",
                           ours[0], ours[1]);
        c->cause = CAUSE_INIT;
}

/* Our drop-ins keep one of the two back, so only one sets up the node. */
static void search_bootstrappers(const Look *l) {
        _strv_ char **others = detect_bootstrappers(l->root);
        _free_ char *list = others ? strv_join(others, " ") : NULL;
        bool held = true;
        for (char **unit = others; unit && *unit; unit++)
                held &= has_drop_in(l->root, *unit);
        if (!list) {
                search_others(l);
                return;
        }
        Check *c = TELL(l->checks, held ? CHECK_WARNING : CHECK_FAILED, "bootstrappers",
                        "nodeadm and nodestrap", list, NULL, "both are enabled; %s: systemctl disable %s",
                        held ? "nodestrap drop-ins let only one of the two set up the node, and an "
                               "update of either may change which"
                             : "nodestrap drop-ins are missing, so nodeadm and nodestrap both set up the "
                               "node in one boot",
                        list);
        c->cause = held ? CAUSE_NONE : CAUSE_INIT;
}

/* Without our drop-in an enabled unit does not wait for init. */
static void search_enabled(const Look *l, const char *unit, const char *early) {
        if (!unit_exists(l, unit))
                return;
        bool enabled = unit_is_enabled(l, unit), fails = streq(unit, "kubelet.service");
        if (enabled && !has_drop_in(l->root, unit)) {
                Check *c = TELL(l->checks, fails ? CHECK_FAILED : CHECK_WARNING, "enabled", unit, NULL, NULL,
                                "it is enabled, and %s.d/10-nodestrap.conf is missing, so it "
                                "starts %s: systemctl disable %s, and reinstall nodestrap",
                                unit, early, unit);
                c->cause = fails ? CAUSE_UNIT : CAUSE_NONE;
        } else if (enabled && fails)
                TELL(l->checks, CHECK_WARNING, "enabled", unit, NULL, NULL,
                     "it is enabled, but a drop-in makes it wait for init, which starts it anyway: "
                     "systemctl disable %s",
                     unit);
}

/* One check for all files of this list. */
static void search_state(const Image *image, Checks *checks, const char *code, const char *subject,
                         const char *text, const char *const *paths) {
        _cleanup_(text_done) Text found = {};
        size_t there = 0;
        for (; *paths; paths++)
                if (root_exists(image->root, *paths) > 0 && ++there <= SHOWN)
                        text_add(&found, "%s%s", there > 1 ? " " : "", *paths);
        if (there > SHOWN)
                text_add(&found, " and %zu more", there - SHOWN);
        if (there > 0)
                TELL(checks, CHECK_WARNING, code, subject, found.data, NULL, "%s", text);
}
#define SEARCH(code, subject, text, ...)                                                       \
        search_state(image, checks, code, subject, text, (const char *const[]){ __VA_ARGS__, NULL })

static void search_node(const Image *image, Checks *checks) {
        SEARCH("leftover-node", "state of another node",
               "the image was made from a node, and every user of the image gets the credentials of that "
               "node: remove these files and /var/lib/nodestrap",
               KUBECONFIG, KUBECONFIG_BOOTSTRAP, KUBELET_DIR "/pki/kubelet-client-current.pem",
               KUBELET_DIR "/pki/kubelet-server-current.pem", CLUSTER_CA,
               "/etc/kubernetes/kubelet/config.json", KUBELET_ENVIRONMENT, MANIFEST_FILE, SERIALS_FILE,
               NVIDIA_OPTIONS);
        SEARCH("leftover-kubelet", "kubelet managers",
               "they record how CPUs and memory of another machine were divided, and kubelet does not start "
               "if this one differs: remove them",
               KUBELET_DIR "/cpu_manager_state", KUBELET_DIR "/memory_manager_state",
               KUBELET_DIR "/dra_manager_state");
        SEARCH("leftover-cloud-init", "cloud-init state",
               "it is from the instance that the image was made on: run cloud-init clean",
               "/var/lib/cloud/instance", "/var/lib/cloud/data/instance-id");
        /* ConditionPathExists=! of nvidia-driver-resolve.service (awslabs/amazon-eks-ami). */
        SEARCH("leftover-driver", "the choice of the NVIDIA driver",
               "it fits the GPUs of the build machine, and a boot does not choose again. Build on a machine "
               "without GPUs, or remove the file and the tree in /opt/nvidia/current",
               "/opt/nvidia/current/.driver-flavor");
        _free_ char *id = NULL;
        if (image_read_line(image->root, "/etc/machine-id", &id) >= 0 && !ONE_OF(id, "", "uninitialized"))
                TELL(checks, CHECK_WARNING, "leftover-machine-id", "/etc/machine-id", NULL, NULL,
                     "all machines of this image get the same id, by which journals and DHCP distinguish "
                     "them: run truncate -s 0 /etc/machine-id");
}

/* nodestrap writes to /var/run/cdi, which a reboot clears. */
static void search_cdi(const Image *image, Checks *checks) {
        _strv_ char **names = root_names(image->root, "/etc/cdi");
        for (char **name = names; name && *name && name < names + MAX_ENTRIES; name++) {
                _free_ char *path = xasprintf("/etc/cdi/%s", *name),
                            *text = image_text(image->root, IMAGE_TEXT_MAX, "%s", path);
                if (text && strstr(text, "nvidia.com/"))
                        TELL(checks, CHECK_WARNING, "leftover-cdi", "CDI specification", path, NULL,
                             "it describes the GPUs of the build machine: remove this file; init writes "
                             "one for each machine to /var/run/cdi");
        }
}

/* The operator makes the directory even without a driver of its own (NVIDIA/gpu-operator: assets/). */
static void search_operator(const Image *image, Checks *checks) {
        if (image->n_drivers > 0)
                SEARCH("driver-container", "a second NVIDIA driver",
                       "the GPU Operator runs a driver container beside the driver of this machine: install "
                       "the operator with driver.enabled=false. Or remove the driver of the image, and set "
                       "spec.accelerator.nvidia.mode: off",
                       "/run/nvidia/driver/usr");
}

static void search_array(const Image *image, Checks *checks, const char *path) {
        _free_ char *text = image_text(image->root, IMAGE_TEXT_MAX, "%s", path);
        bool has = false;
        for (const char *at = text ?: ""; *at && !has;) {
                _free_ char *line = str_cut(&at, "\n");
                has = strncasecmp(line + strspn(line, " \t"), "array ", strlen("array ")) == 0;
        }
        if (has)                        /* awslabs/amazon-eks-ami#2755, #2869 */
                TELL(checks, CHECK_WARNING, "leftover-array", "mdadm.conf", path, NULL,
                     "its ARRAY line is from another machine, so the array here cannot get its name. "
                     "Remove the line; if the initramfs contains the file, rebuild it");
}

static void search_arrays(const Image *image, Checks *checks) {
        static const char *const files[] = { "/etc/mdadm.conf", "/etc/mdadm/mdadm.conf" };
        static const char *const folders[] = { "/etc/mdadm.conf.d", "/etc/mdadm/mdadm.conf.d" };
        for (size_t i = 0; i < ARRAY_SIZE(files); i++)
                search_array(image, checks, files[i]);
        for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
                _strv_ char **names = root_names(image->root, folders[i]);
                for (char **name = names; name && *name && name < names + MAX_ENTRIES; name++) {
                        _free_ char *path = xasprintf("%s/%s", folders[i], *name);
                        search_array(image, checks, path);
                }
        }
}

void image_search(const Image *image, Checks *checks) {
        _cleanup_(look_end) Look l = look_begin(image, checks);
        size_t before = checks->n;
        search_bootstrappers(&l);
        search_enabled(&l, "kubelet.service", "before it is configured");
        search_enabled(&l, "containerd.service", "before its disks are mounted");
        search_cdi(image, checks);
        if (image->running)
                search_operator(image, checks);
        if (!image->running) {
                search_node(image, checks);
                search_arrays(image, checks);
                search_mounts(&l);
        }
        if (checks->n == before)
                checks_add(checks, CHECK_OK, "leftovers", "state of another machine", "none");
}
