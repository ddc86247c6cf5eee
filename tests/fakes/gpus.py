#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: gpus.py [names | mode 0|1 | create NAME,NAME… | clocks MEMORY,GRAPHICS | reset [ADDRESS] | power-on]
What the management library says of each GPU, in the order of PCI addresses, one line each: ADDRESS FABRIC MIG INSTANCES, as
"0000:53:00.0 completed off 0". Ends with 1 and the library's error where it does not answer. By its public functions alone, as a device
plugin asks (https://docs.nvidia.com/deploy/nvml-api). names: of each GPU "N ADDRESS UUID off|on", behind it of its MIG devices "N:M ADDRESS UUID INSTANCE". Or does to all GPUs what nvidia-smi's -mig, mig -cgi -C, --applications-clocks and --gpu-reset do."""
import ctypes
import sys

STATES = ['not-supported', 'not-started', 'in-progress', 'completed']
UINT, VOID = ctypes.c_uint, ctypes.c_void_p


class Pci(ctypes.Structure):
    _fields_ = [('legacy', ctypes.c_char * 16), ('domain', UINT), ('bus', UINT), ('device', UINT), ('id', UINT), ('subsystem', UINT), ('address', ctypes.c_char * 32)]


class Fabric(ctypes.Structure):
    _fields_ = [('uuid', ctypes.c_ubyte * 16), ('status', UINT), ('clique', UINT), ('state', ctypes.c_ubyte)]


class Profile(ctypes.Structure):
    _fields_ = [(n, UINT) for n in ('version', 'id', 'p2p', 'slices', 'instances', 'sm', 'ce', 'dec', 'enc', 'jpeg', 'ofa')] + [
        ('memory', ctypes.c_ulonglong), ('name', ctypes.c_char * 96)]


try:
    nvml = ctypes.CDLL('libnvidia-ml.so.1')
except OSError as e:
    sys.exit(f'NVML: {e}')


def ask(function, *arguments):
    return getattr(nvml, function)(*arguments)


def must(function, *arguments):
    code = ask(function, *arguments)
    if code:
        nvml.nvmlErrorString.restype = ctypes.c_char_p
        sys.exit(f'{function}: {nvml.nvmlErrorString(code).decode()}')


def profiles(device):
    for index in range(32):
        profile = Profile(version=ctypes.sizeof(Profile) | 2 << 24)
        if ask('nvmlDeviceGetGpuInstanceProfileInfoV', device, UINT(index), ctypes.byref(profile)) == 0:
            yield profile.name.decode().removeprefix('MIG '), profile


def instances(device):
    n = 0
    for _, profile in profiles(device):
        count, handles = UINT(16), (VOID * 16)()
        must('nvmlDeviceGetGpuInstances', device, UINT(profile.id), handles, ctypes.byref(count))
        n += count.value
    return n


def look(index):
    device, pci, fabric, current, pending = VOID(), Pci(), Fabric(), UINT(), UINT()
    must('nvmlDeviceGetHandleByIndex_v2', UINT(index), ctypes.byref(device))
    must('nvmlDeviceGetPciInfo_v3', device, ctypes.byref(pci))
    state = 'not-supported' if ask('nvmlDeviceGetGpuFabricInfo', device, ctypes.byref(fabric)) else STATES[fabric.state]
    if state == 'completed' and fabric.status:
        state = f'failed-{fabric.status}'
    mig = 'none' if ask('nvmlDeviceGetMigMode', device, ctypes.byref(current), ctypes.byref(pending)) else ('off', 'on')[current.value]
    address = f'{pci.domain:04x}:{pci.bus:02x}:{pci.device:02x}.0'
    return f'{address} {state} {mig} {instances(device) if mig == "on" else 0}'


def uuid(device):
    text = ctypes.create_string_buffer(96)
    must('nvmlDeviceGetUUID', device, text, UINT(96))
    return text.value.decode()


def names(index):
    address, _, mig, _ = look(index).split()
    device, handle, most, instance = VOID(), VOID(), UINT(), UINT()
    must('nvmlDeviceGetHandleByIndex_v2', UINT(index), ctypes.byref(device))
    print(index, address, uuid(device), 'on' if mig == 'on' else 'off')
    must('nvmlDeviceGetMaxMigDeviceCount', device, ctypes.byref(most))
    for k in range(most.value if mig == 'on' else 0):
        if ask('nvmlDeviceGetMigDeviceHandleByIndex', device, UINT(k), ctypes.byref(handle)) == 0:
            must('nvmlDeviceGetGpuInstanceId', handle, ctypes.byref(instance))
            print(f'{index}:{k}', address, uuid(handle), instance.value)


def change(index, what, value):
    device, instance, compute, activation = VOID(), VOID(), VOID(), UINT()
    must('nvmlDeviceGetHandleByIndex_v2', UINT(index), ctypes.byref(device))
    if what == 'mode':
        must('nvmlDeviceSetMigMode', device, UINT(int(value)), ctypes.byref(activation))
        return
    if what == 'clocks':
        if ask('nvmlDeviceSetApplicationsClocks', device, *(UINT(int(clock)) for clock in value.split(','))) not in (0, 3, 26):
            sys.exit('nvmlDeviceSetApplicationsClocks')         # nvidia-smi warns of what a GPU does not have, and goes on
        return
    known = dict(profiles(device))
    for name in value.split(','):
        must('nvmlDeviceCreateGpuInstance', device, UINT(known[name].id), ctypes.byref(instance))
        must('nvmlGpuInstanceCreateComputeInstance', instance, UINT(known[name].slices), ctypes.byref(compute))


must('nvmlInit_v2')
count = UINT()
must('nvmlDeviceGetCount_v2', ctypes.byref(count))
if sys.argv[1:] == ['reset']:
    sys.exit(nvml.fakeNvmlReset(-1))
elif sys.argv[1:2] == ['reset']:
    sys.exit(nvml.fakeNvmlReset([look(i).split()[0] for i in range(count.value)].index(sys.argv[2])))
elif sys.argv[1:] == ['power-on']:
    nvml.fakeNvmlReset(-2)
elif sys.argv[1:2] == ['names']:
    for gpu in range(count.value):
        names(gpu)
elif sys.argv[1:]:
    for gpu in range(count.value):
        change(gpu, *sys.argv[1:])
else:
    print('\n'.join(sorted(look(i) for i in range(count.value))))
