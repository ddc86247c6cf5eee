/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Paths that several files of src/ use, except kernel paths in /proc and /sys. */

/* ---- nodestrap ---- */
#define RUN_DIR             "/run/nodestrap"
#define RUN_LOCK            RUN_DIR "/lock"         /* of init, except */
#define DEVICES_LOCK        RUN_DIR "/devices.lock" /* the devices phase: from take-turn on */
#define BOOTSTRAPPER_LINK   "/run/eks-bootstrapper" /* → nodestrap or nodeadm: the owner of this boot */
/* containerd waits for it (units/containerd.service.d); a line for each mount */
#define EC2_LOCK            RUN_DIR "/ec2.lock"     /* of each request to EC2 */
#define MOUNTS_READY        RUN_DIR "/mounts-ready"
/* an enabled kubelet waits for it (units/kubelet.service.d) */
#define KUBELET_TURN        RUN_DIR "/kubelet-may-start"
#define FABRIC_TURN         RUN_DIR "/fabric-may-start"         /* units/nvidia-fabricmanager.service.d */
#define READ_AHEAD_FILE     RUN_DIR "/read-ahead.json"      /* units/nodestrap-read-ahead.service */
#define TUNING_FILE         RUN_DIR "/tuning"       /* "PATH VALUE": before set-tuning */
#define IMEX_BARRED         RUN_DIR "/imex-barred"              /* units/nvidia-imex.service.d */
#define CDI_TURN            RUN_DIR "/cdi-may-refresh"          /* units/nvidia-cdi-refresh.service.d */
/* units/kubelet.service.d, behind KUBELET_ENVIRONMENT */
#define TAINT_FILE          RUN_DIR "/kubelet-environment"
/* "reboot 0 60" for units/nodestrap-power.service: in 0 s, after the report to the cluster, within 60 s */
#define POWER_FILE          RUN_DIR "/power"
#define PRE_PULL_UNIT       "nodestrap-pre-pull.service"
#define PRE_PULL_CONFIG     "/etc/nodestrap/pre-pull.json"
#define PRE_PULL_RESULT     RUN_DIR "/pre-pull.json"
#define RUN_CONFIG_CACHE    "/run/eks/nodeadm/config.json"      /* --config-cache of our units */
#define MANIFEST_FILE       "/var/lib/nodestrap/manifest.json"  /* of the files that we own */
/* from the NodeConfig, for a service, or for all: "default" */
#define ENVIRONMENT_DIR     "/etc/nodestrap/environment"
#define TRUSTED_DIR         "/etc/nodestrap/trusted.d"          /* keys that may sign configurations */
#define SERIALS_FILE        "/var/lib/nodestrap/serials.json"   /* of the last signed configurations */

/* ---- nodeadm: its udev helper looks for them (nodeadm: internal/system/marker.go) ---- */
#define INIT_MARKER         "/run/nodeadm/init" /* the run phase has begun: the CNI owns new interfaces, */
/* but not tagged ones (awslabs/amazon-eks-ami#2791) */
#define NO_MANAGE_MARKER    "/run/nodeadm/os-managed-no-manage-enis"

/* ---- systemd ---- */
#define UNIT_DIR            "/etc/systemd/system"
#define SYSTEM_ENVIRONMENT  "/etc/systemd/system.conf.d/environment.conf"
#define NETWORK_DIR         "/run/systemd/network"              /* our files for networkd */
#define MTU_DROP_IN         "nodestrap-mtu.conf"                /* in 70-eks-NAME.network.d there */

/* ---- kubelet ---- */
#define KUBELET_DIR         "/var/lib/kubelet"
#define KUBELET_ENVIRONMENT "/etc/eks/kubelet/environment"
#define KUBECONFIG          KUBELET_DIR "/kubeconfig"
#define KUBECONFIG_BOOTSTRAP KUBELET_DIR "/bootstrap-kubeconfig" /* Outposts: until it has a certificate */
#define CLUSTER_CA          "/etc/kubernetes/pki/ca.crt"
#define PROVIDER_CONFIG     "/etc/eks/image-credential-provider/config.json"
#define ECR_PROVIDER        "/etc/eks/image-credential-provider/ecr-credential-provider"

/* ---- containerd ---- */
#define CONTAINERD_DIR      "/var/lib/containerd"
#define CONTAINERD_SOCKET   "/run/containerd/containerd.sock"
#define CONTAINERD_CONFIG   "/etc/containerd/config.toml"
#define RUNTIME_SPEC        "/etc/containerd/base-runtime-spec.json"
/* In every EKS AMI, so it is not pulled (awslabs/amazon-eks-ami: cache-pause-container). Without the tag
 * containerd 2.3 does not find it and 2.2 does not pin it (#2729, #2730). */
#define SANDBOX_IMAGE       "localhost/kubernetes/pause:latest"
#define SANDBOX_ARCHIVE     "/etc/eks/pause.tar"                /* the same, exported */
#define SOCI_DIR            "/var/lib/soci-snapshotter-grpc"
#define SOCI_SOCKET         "/run/soci-snapshotter-grpc/soci-snapshotter-grpc.sock"
#define SOCI_CONFIG         "/etc/soci-snapshotter-grpc/config.toml"

/* ---- NVIDIA ---- */
#define NVIDIA_RUNTIME      "/usr/bin/nvidia-container-runtime"
#define GPU_DIRECT_OPTION   "GrdmaPciTopoCheckOverride"         /* since driver 570.86.15 */
/* sorts last, to win over files of AMIs */
#define NVIDIA_OPTIONS      "/etc/modprobe.d/zz-nodestrap-nvidia.conf"
#define NVLSM_PROGRAM       "/opt/nvidia/nvlsm/sbin/nvlsm"
#define NVLSM_CONFIG        "/usr/share/nvidia/nvlsm/nvlsm.conf"        /* of the fabric manager unit */
#define FABRIC_CONFIG       "/usr/share/nvidia/nvswitch/fabricmanager.cfg"
#define MIG_DEFAULTS        "/etc/default/mig"
#define IMEX_CONFIG         "/etc/nvidia-imex/config.cfg"       /* has the port for nvidia-imex-ctl, too */
