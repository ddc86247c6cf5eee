/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Paths that more than one file of src/ knows. What the kernel shows in /proc and /sys is not among them. */

/* ---- ours ---- */
#define RUN_DIR             "/run/nodestrap"
#define RUN_LOCK            RUN_DIR "/lock"         /* held by an init, but for one of the devices alone, */
#define DEVICES_LOCK        RUN_DIR "/devices.lock" /* which holds this; others from take-turn on */
#define BOOTSTRAPPER_LINK   "/run/eks-bootstrapper" /* → whose units have this boot: nodestrap, nodeadm */
#define MOUNTS_READY        RUN_DIR "/mounts-ready"             /* units/containerd.service.d: until it is
                                                                 * there, containerd does not start. A line
                                                                 * for each mount: nodestrap-trim.service */
#define KUBELET_TURN        RUN_DIR "/kubelet-may-start"        /* units/kubelet.service.d: the same for
                                                                 * a kubelet that is enabled by itself */
#define FABRIC_TURN         RUN_DIR "/fabric-may-start"         /* units/nvidia-fabricmanager.service.d */
#define IMEX_BARRED         RUN_DIR "/imex-barred"              /* units/nvidia-imex.service.d */
#define CDI_TURN            RUN_DIR "/cdi-may-refresh"          /* units/nvidia-cdi-refresh.service.d */
#define TAINT_FILE          RUN_DIR "/kubelet-environment"      /* units/kubelet.service.d reads it
                                                                 * behind KUBELET_ENVIRONMENT */
#define POWER_FILE          RUN_DIR "/power"        /* units/nodestrap-power.service: "reboot 0 60", do it in
                                                     * so many seconds, and when the cluster has heard why,
                                                     * but in so many at the latest */
#define RUN_CONFIG_CACHE    "/run/eks/nodeadm/config.json"      /* --config-cache of our units */
#define MANIFEST_FILE       "/var/lib/nodestrap/manifest.json"  /* of the files that this tool owns */
#define ENVIRONMENT_DIR     "/etc/nodestrap/environment"        /* what the NodeConfig's environment says for
                                                                 * a service, and for all: "default" */
#define TRUSTED_DIR         "/etc/nodestrap/trusted.d"          /* keys of who may sign configurations */
#define SERIALS_FILE        "/var/lib/nodestrap/serials.json"   /* of the signed ones applied last */

/* ---- nodeadm's, which its udev helper looks for (nodeadm: internal/system/marker.go) ---- */
#define INIT_MARKER         "/run/nodeadm/init"                 /* the run phase has begun: interfaces that
                                                                 * come now are the CNI's */
#define NO_MANAGE_MARKER    "/run/nodeadm/os-managed-no-manage-enis"    /* but for those that are tagged so
                                                                 * (awslabs/amazon-eks-ami#2791) */

/* ---- systemd's ---- */
#define UNIT_DIR            "/etc/systemd/system"
#define SYSTEM_ENVIRONMENT  "/etc/systemd/system.conf.d/environment.conf"
#define NETWORK_DIR         "/run/systemd/network"              /* where we put what networkd reads */

/* ---- kubelet's ---- */
#define KUBELET_DIR         "/var/lib/kubelet"
#define KUBELET_ENVIRONMENT "/etc/eks/kubelet/environment"
#define KUBECONFIG          KUBELET_DIR "/kubeconfig"
#define KUBECONFIG_BOOTSTRAP KUBELET_DIR "/bootstrap-kubeconfig" /* Outposts: until it has a certificate */
#define CLUSTER_CA          "/etc/kubernetes/pki/ca.crt"
#define ECR_PROVIDER        "/etc/eks/image-credential-provider/ecr-credential-provider"

/* ---- containerd's ---- */
#define CONTAINERD_DIR      "/var/lib/containerd"
#define CONTAINERD_SOCKET   "/run/containerd/containerd.sock"
#define CONTAINERD_CONFIG   "/etc/containerd/config.toml"
#define RUNTIME_SPEC        "/etc/containerd/base-runtime-spec.json"
#define SANDBOX_IMAGE       "localhost/kubernetes/pause:latest"  /* of every EKS AMI, so that nothing is
                                                                 * pulled (cache-pause-container in
                                                                 * awslabs/amazon-eks-ami). With its
                                                                 * tag: without it containerd 2.3 does
                                                                 * not find the image and 2.2 does not
                                                                 * pin it (#2729, #2730 there) */
#define SANDBOX_ARCHIVE     "/etc/eks/pause.tar"                /* and the same, exported */
#define SOCI_DIR            "/var/lib/soci-snapshotter-grpc"
#define SOCI_SOCKET         "/run/soci-snapshotter-grpc/soci-snapshotter-grpc.sock"
#define SOCI_CONFIG         "/etc/soci-snapshotter-grpc/config.toml"

/* ---- NVIDIA's ---- */
#define NVIDIA_RUNTIME      "/usr/bin/nvidia-container-runtime"
#define NVIDIA_OPTIONS      "/etc/modprobe.d/zz-nodestrap-nvidia.conf"  /* the last file wins, and AMIs
                                                                         * have theirs */
#define NVLSM_PROGRAM       "/opt/nvidia/nvlsm/sbin/nvlsm"
#define NVLSM_CONFIG        "/usr/share/nvidia/nvlsm/nvlsm.conf"        /* of fabric manager's unit */
#define FABRIC_CONFIG       "/usr/share/nvidia/nvswitch/fabricmanager.cfg"
#define MIG_DEFAULTS        "/etc/default/mig"
#define IMEX_CONFIG         "/etc/nvidia-imex/config.cfg"       /* says also where the daemon
                                                                 * listens for nvidia-imex-ctl */
