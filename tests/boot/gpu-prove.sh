#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0 -t 600
# imds: imds-m5
# gpu: p5-48xlarge many
# tree: gpu api
# console: prove-gpus:gpus: memory-wrong: GPU 3 \(0000:86:00.0\): [1-9][0-9]* of [0-9]+ words of its memory were wrong, the first at offset 0x[0-9a-f]+, wrong bits 0x0000000000000010
# console: prove-gpus:gpus: compute-wrong: GPU 2
# console: prove-gpus:gpus: slow-link: GPU 3 .*GPU 3 ↔ GPU 5
# console: prove-gpus:gpus: slow-memory: GPU 4
# console: prove-gpus:gpus: prove-timeout: GPU 6 .*cuLaunchKernel: timeout
# console: prove-gpus:gpus: prove-failed:
# console: prove-gpus:gpus: prove-no-memory: GPU 1
# console: prove-gpus:gpus: prove-ptx: GPU 0
# console: prove-gpus:gpus: prove-in-use: GPU 2
# console: prove-gpus:gpus: prove-no-libcuda:
# console: prove-gpus:gpus: prove-unsupported: GPU 0
# console: NODESTRAP verdict=failed code=EHEALTH step=prove-gpus
# console: NODESTRAP verdict=tainted code=EHEALTH step=prove-gpus
# console: nodestrap: failed \(33 EHEALTH\) at prove-gpus:gpus:
# nodestrap-prove tests the GPUs in its unit, on a libcuda that executes its PTX. Each fault has its word, and the configuration decides its
# consequence.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

shown() { nodestrap status --long | grep -E -- "$1" || { nodestrap status --long | sed -n '/^Test/,/^plan/p'; cat /run/nodestrap/prove; return 1; }; }
# machine [LINE…]: a p5 whose libcuda does what the lines say, and a configuration that tests it.
policy=quick more='' fixture=p5-48xlarge
machine() {
        power_on $fixture; cp /vmtest/cluster.yaml /etc/eks/nodeadm.d/
        printf '%s\n' 'noise 10' "$@" >/etc/fakes/cuda; nvml_changed
        spec "{accelerator: {nvidia: {prove: $policy, proveTimeout: 10s${more:+, $more}}}${failure:+, failurePolicy: $failure}}"
}
proved() { journalctl -b -o cat -u 'nodestrap-prove@*' | grep -c 'Starting nodestrap-prove@'; }

machine
before=$(proved)
try "the node comes up with eight healthy GPUs" node_starts
try "status says that the test found nothing" shown '^Test: passed$'
try "status has the figures of the test" shown '^  .* GiB of GPU memory, memory .* to-gpu .* to-host .* link .* GB/s$'
try "the metrics have 32 figures of the test" is "$(grep -c '^nodestrap_gpu_prove_bytes_per_second{' /run/nodestrap/metrics.prom)" 32
try "status.json has the figures of all 56 links" is "$(python3 -c 'import json; print(len(json.load(open("/run/nodestrap/status.json"))["accelerator"]["prove"]["links"]))')" 56
try "the GPUs were tested once" is $(($(proved) - before)) 1
try "a second run succeeds" systemctl restart nodestrap-run
try "a second run does not test the GPUs again" is $(($(proved) - before)) 1
try "nvidia-smi lists the GPUs before kubelet starts" in_order 'nvidia-smi.*-L' kubelet
try "the unit of the helper has no capabilities" grep -q '^CapabilityBoundingSet=$' /usr/lib/systemd/system/nodestrap-prove@.service

machine 'stuck 3 0x8000 4 1'
fails 33 EHEALTH 'GPU 3 \(0000:86:00.0\): [0-9]+ of [0-9]+ words' "a bit that is stuck"
try "the Event names the GPU with the stuck bit" grep -rq 'GPU 3' /run/nodestrap/events
machine 'wrong-sm 2 0'
fails 33 EHEALTH 'GPU 2 .*multiplied matrices' "a multiprocessor that adds wrongly"
machine 'hang cuLaunchKernel 6'
fails 33 EHEALTH 'GPU 6 .*cuLaunchKernel: timeout' "a kernel launch that never returns"
try "the metrics have figures of the seven other GPUs" is "$(grep -c '^nodestrap_gpu_prove_tested_bytes{' /run/nodestrap/metrics.prom)" 7
machine 'die 400'
fails 33 EHEALTH 'the test of the GPUs ended early \(signal\)' "a helper that is killed"
machine 'lost 5 700 after 4x'
fails 33 EHEALTH 'GPU 5 .*CUDA_ERROR_ILLEGAL_ADDRESS \(700\)' "a GPU that fails in the middle"
failure=join-tainted; machine 'die 150'; failure=
try "join-tainted with a helper that is killed: the node comes up" node_starts
try "join-tainted with a helper that is killed: the verdict is tainted" is "$(value verdict) $(value code)" "tainted EHEALTH"
failure=join-tainted; machine 'wrong-sm 2 0'; failure=
try "join-tainted with a wrong multiprocessor: the node comes up" node_starts
try "join-tainted with a wrong multiprocessor: the verdict is tainted" is "$(value verdict) $(value code)" "tainted EHEALTH"

machine 'speed peer 120 3 5'
try "a slow link: the node comes up" node_starts
try "the finding names both GPUs of the slow link" shown 'slow-link: GPU 3 .*GPU 3 ↔ GPU 5'
try "the test has findings, but no other fault" shown '^Test: with findings$'
more='health: require'; machine 'speed memory 1900 4'; more=
fails 33 EHEALTH 'GPU 4 .*below 80 % of the median' "slow memory, with health: require"
machine 'error cuMemAlloc 2 1'
try "no free GPU memory: the node comes up" node_starts
try "the finding names the GPU without free memory" shown 'prove-no-memory: GPU 1'
machine 'ptx 6.3'
try "a driver that refuses the PTX: the node comes up" node_starts
try "the finding names the GPU that refuses the program" shown 'prove-ptx: GPU 0'
machine 'error cuCtxCreate 46 2'
try "a GPU that another program has: the node comes up" node_starts
try "the finding names the GPU that is in use" shown 'prove-in-use: GPU 2'
library=/usr/lib/x86_64-linux-gnu/libcuda.so.1; machine; mv $library $library.away
try "no libcuda: the node comes up" node_starts
try "the finding says that libcuda is missing" shown 'prove-no-libcuda: '
mv $library.away $library
fixture=g4dn; machine
try "T4: the node comes up" node_starts
try "the test leaves out a GPU that it does not support" shown 'prove-unsupported: GPU 0 .*7.5'
fixture=p5-48xlarge
policy=off; machine 'stuck 3 0x8000 4 1'
try "prove off: the node comes up" node_starts
try "prove off: status has no line for the test" no shown '^Test'
finish
