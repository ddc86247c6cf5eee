#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: image.sh DIR [x86_64|arm64] [trees]
# Makes below DIR the root of an image for machines with NVIDIA GPUs (HGX and single ones; arm64: also trays of a rack).
# Every program, library and module is there by name, as an ELF file of that architecture without code. Units, enabled links, lists of a
# kernel and names with versions are there, too. DRIVER, KUBELET, CONTAINERD, KERNEL change them. nv-fabricmanager holds the driver version
# as text.
# trees: as in the newest images of EKS (awslabs/amazon-eks-ami: install-nvidia-driver-tree.sh, setup-nvidia.sh) the driver lies below
# /opt/nvidia/lts, and another version (PB) below /opt/nvidia/pb. A boot makes one of them a part of /.
set -eu; cd "$(dirname "$0")/../.."; dir=$1 arch=${2:-x86_64} layout=${3:-plain}
driver=${DRIVER:-580.126.09} kernel=${KERNEL:-6.12.46-66.121.amzn2023.${arch/arm64/aarch64}}
mkdir -p "$dir"/{boot,dev,proc,sys,run,tmp,root,opt,usr/{bin,sbin,lib,lib64},etc/systemd/system/multi-user.target.wants,var/lib,var/log}; chmod 1777 "$dir/tmp"
for i in bin sbin lib lib64; do ln -s "usr/$i" "$dir/$i"; done
mkdir -p "$dir"/usr/lib/{systemd/system,modules/"$kernel"/{kernel,extra}} "$dir"/etc/{eks/image-credential-provider,cdi,modprobe.d,sysctl.d} \
        "$dir"/opt/nvidia/nvlsm/sbin "$dir"/usr/share/nvidia "$dir"/etc/systemd/network

DIR=$dir ARCH=$arch DRIVER=$driver KERNEL=$kernel LAYOUT=$layout PB=${PB:-595.45.04} python3 - <<'PY'
import os, struct
root, driver, kernel, layout = (os.environ[k] for k in ("DIR", "DRIVER", "KERNEL", "LAYOUT"))
trees = [("/opt/nvidia/lts", driver), ("/opt/nvidia/pb", os.environ["PB"])] if layout == "trees" else [("", driver)]
machine, loader = {"x86_64": (62, "ld-linux-x86-64.so.2"), "arm64": (183, "ld-linux-aarch64.so.1")}[os.environ["ARCH"]]

def elf(interpreter=None, needed=(), soname=None, info=None, strings=b""):
    names, dynamic, segments = b"\0", [], []
    for tag, text in [(1, n) for n in needed] + ([(14, soname)] if soname else []):
        dynamic.append((tag, len(names))); names += text.encode() + b"\0"
    at = 64 + 3 * 56
    size = 16 * (len(dynamic) + 3)
    dynamic += [(5, at + size), (10, len(names)), (0, 0)]
    body = b"".join(struct.pack("<QQ", *d) for d in dynamic) + names
    at_interpreter = at + len(body); body += (interpreter or "").encode() + b"\0"
    at_info = at + len(body); body += info or b""
    at_names = at + len(body); body += b"\0.modinfo\0.shstrtab\0"
    at_sections = at + len(body)
    for name, kind, offset, n in (0, 0, 0, 0), (1, 1, at_info, len(info or b"")), (10, 3, at_names, 20):
        body += struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, offset, n, 0, 0, 0, 0)
    body += strings
    segments.append((1, 0, at + len(body)))
    if interpreter: segments.append((3, at_interpreter, len(interpreter) + 1))
    if needed or soname: segments.append((2, at, size))
    head = struct.pack("<4sBBB9xHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 3, machine, 1, 0, 64, at_sections, 0, 64, 56, len(segments), 64, 3 if info else 0, 2)
    table = b"".join(struct.pack("<IIQQQQQQ", kind, 5, offset, offset, 0, n, n, 8) for kind, offset, n in segments)
    return head + table.ljust(3 * 56, b"\0") + body

def put(path, data, mode=0o644):
    path = root + path
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f: f.write(data)
    os.chmod(path, mode)

def link(path, target):
    os.makedirs(os.path.dirname(root + path), exist_ok=True); os.symlink(target, root + path)

libraries = "libc.so.6 libm.so.6 libcurl.so.4 libblkid.so.1 libmount.so.1 libsystemd.so.0 libcrypto.so.3 libjansson.so.4 libyaml-0.so.2 libexpat.so.1 libz.so.1"
put("/usr/lib64/" + loader, elf(soname=loader), 0o755)
if machine == 183: link("/usr/lib/" + loader, "../lib64/" + loader)
for name in libraries.split(): put("/usr/lib64/" + name, elf(soname=name, needed=() if name == "libc.so.6" else ("libc.so.6",)), 0o755)
for tree, version in trees:
    for name in "libnvidia-ml", "libcuda":
        put(f"{tree}/usr/lib64/{name}.so.{version}", elf(soname=f"{name}.so.1", needed=("libc.so.6",)), 0o755)
        link(f"{tree}/usr/lib64/{name}.so.1", f"{name}.so.{version}")
    put(f"{tree}/usr/lib/firmware/nvidia/{version}/gsp_ga10x.bin", b"GSP")
    put(f"{tree}/usr/share/nvidia/nvswitch/fabricmanager.cfg", b"DAEMONIZE=1\n"); put(f"{tree}/usr/share/nvidia/nvlsm/nvlsm.conf", b"daemon false\n")
    if tree: put(f"{tree}/.version", version.encode() + b"\n"); put(f"{tree}/etc/nvidia/gridd.conf.template", b"")
path = ("/lib64/" if machine == 62 else "/lib/") + loader
program = elf(interpreter=path, needed=("libc.so.6",))
for name in """/usr/lib/systemd/systemd /usr/bin/nodestrap mount umount cp systemctl ctr containerd containerd-shim-runc-v2 kubelet unpigz pigz bash sh env getent
        /usr/sbin/runc /usr/sbin/mdadm /usr/sbin/mkfs.xfs /usr/sbin/mkfs.ext4 /usr/sbin/modprobe /usr/sbin/ibstat /usr/sbin/xfs_growfs /usr/sbin/resize2fs
        /usr/sbin/ip /usr/sbin/udevadm soci-snapshotter-grpc nvidia-ctk nvidia-container-runtime nvidia-container-runtime-hook aws
        /opt/nvidia/nvlsm/sbin/nvlsm /etc/eks/image-credential-provider/ecr-credential-provider""".split():
    put(name if name[0] == "/" else "/usr/bin/" + name, program, 0o755)
for tree, version in trees:
    for name in "nvidia-smi", "nvidia-modprobe", "nvidia-gridd", "nvidia-imex-ctl", "nvidia-fabricmanager-start.sh": put(f"{tree}/usr/bin/{name}", program, 0o755)
    for name in "nv-fabricmanager", "nvidia-imex", "nvidia-persistenced":
        put(f"{tree}/usr/bin/{name}", elf(interpreter=path, needed=("libc.so.6",), strings=b"\0" + version.encode() + b"\0"), 0o755)

modules = """kernel/drivers/net/ethernet/amazon/ena/ena kernel/drivers/nvme/host/nvme kernel/fs/overlayfs/overlay kernel/drivers/md/md-mod kernel/drivers/md/raid0
        kernel/drivers/md/raid10 kernel/fs/xfs/xfs kernel/fs/ext4/ext4 kernel/drivers/infiniband/core/ib_core kernel/drivers/infiniband/core/ib_uverbs
        kernel/drivers/infiniband/core/ib_umad kernel/drivers/infiniband/core/rdma_cm kernel/drivers/infiniband/hw/mlx5/mlx5_ib kernel/net/bridge/br_netfilter
        kernel/drivers/net/ethernet/mellanox/mlx5/core/mlx5_core kernel/drivers/infiniband/hw/efa/efa extra/nvidia extra/nvidia-uvm extra/nvidia-modeset extra/gdrdrv
        extra/neuron""".split()
base = f"/usr/lib/modules/{kernel}/"
of_driver = {"extra/nvidia", "extra/nvidia-uvm", "extra/nvidia-modeset", "extra/gdrdrv"}
if layout == "trees": modules = [m for m in modules if m not in of_driver]
def put_module(m, base, version=driver, license=b"Dual MIT/GPL"):
    info = b"license=" + license + b"\0" + (b"version=" + version.encode() + b"\0" if "nvidia" in m else b"") + b"vermagic=" + kernel.encode() + b" SMP mod_unload\0"
    put(base + m + ".ko", elf(info=info))
for m in modules: put_module(m, base)
for tree, version in trees:
    for flavor in ("open", "proprietary", "grid") if tree else ():
        for m in sorted(of_driver): put_module(m, f"{tree}/flavors/{flavor}/lib/modules/{kernel}/", version, b"NVIDIA" if flavor == "proprietary" else b"Dual MIT/GPL")
put(base + "modules.dep", "".join(f"{m}.ko:\n" for m in modules).encode())
put(base + "modules.builtin", b"kernel/fs/binfmt_misc.ko\n")
put(base + "config", "".join(f"CONFIG_{c}=y\n" for c in "CGROUPS MEMCG SECCOMP_FILTER HUGETLBFS NUMA NAMESPACES UTS_NS IPC_NS PID_NS CPUSETS FAIR_GROUP_SCHED CGROUP_PIDS OVERLAY_FS NET_NS USER_NS MEMORY_HOTPLUG BPF_SYSCALL CGROUP_BPF".split()).encode())
put(f"/boot/vmlinuz-{kernel}", b"MZ")
for name, start in ("containerd", "containerd"), ("kubelet", "kubelet $NODEADM_KUBELET_ARGS\nEnvironmentFile=/etc/eks/kubelet/environment"), ("nvidia-persistenced", "nvidia-persistenced"), ("nvidia-imex", "nvidia-imex"), \
        ("nvidia-fabricmanager", "nvidia-fabricmanager-start.sh"), ("nvidia-gridd", "nvidia-gridd"), ("soci-snapshotter", "soci-snapshotter-grpc"):
    for tree, _ in trees if name.startswith("nvidia-") else [("", "")]:
        put(f"{tree}/usr/lib/systemd/system/{name}.service", f"[Service]\nExecStart=/usr/bin/{start}\n[Install]\nWantedBy=multi-user.target\n".encode())
if layout == "trees":
    for name in "driver-resolve", "usr-copy@", "setup":
        put(f"/etc/systemd/system/nvidia-{name}.service", f"[Service]\nType=oneshot\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n".encode())
PY

cp units/*.service units/*.path "$dir/usr/lib/systemd/system/"
for d in units/*.service.d; do cp -r "$d" "$dir/usr/lib/systemd/system/"; done
for i in config devices run boot-hook; do
        ln -s "/usr/lib/systemd/system/nodestrap-$i.service" "$dir/etc/systemd/system/multi-user.target.wants/"
done
cp tests/fakes/al2023/rootfs/etc/sysctl.d/*.conf "$dir/etc/sysctl.d/"
echo "${KUBELET:-1.34.2}" >"$dir/etc/eks/kubelet-version.txt"; echo "${CONTAINERD:-2.1.5}" >"$dir/etc/eks/containerd-version.txt"
echo pause >"$dir/etc/eks/pause.tar"; : >"$dir/etc/machine-id"; rmdir "$dir/etc/cdi"
printf 'NAME="Amazon Linux"\nVERSION_ID="2023"\nID="amzn"\n' >"$dir/etc/os-release"
printf 'root:x:0:0:root:/root:/bin/bash\n' >"$dir/etc/passwd"
