// SPDX-License-Identifier: Apache-2.0

// A DRA driver by the library for such drivers (k8s.io/dynamic-resource-allocation/kubeletplugin): registered with kubelet, it publishes
// one ResourceSlice. Its devices exist in name only. tests/tools/kube.sh --plugins builds it.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	resource "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

var (
	name      = flag.String("driver", "gpu.nvidia.com", "name of the driver")
	attribute = flag.String("attribute", "type=gpu", "an attribute of each device; true is a boolean")
	devices   = flag.Int("devices", 8, "number of devices")
	tainted   = flag.Int("tainted", 0, "how many of these have a taint")
	file      = flag.String("file", "", "the two numbers, \"8 1\", in a file that may change")
	delay     = flag.Duration("delay", 0, "time before it registers")
	die       = flag.Duration("die", 0, "time from there to its end, 0: none; as after a crash, its sockets stay")
	node      = flag.String("node", "", "name of the Node")
	access    = flag.String("kubeconfig", "", "how it reaches the API server")
	dir       = flag.String("dir", "/var/lib/kubelet", "directory of kubelet")
)

type driver struct{}

func (driver) PrepareResourceClaims(_ context.Context, claims []*resource.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	answer := map[types.UID]kubeletplugin.PrepareResult{}
	for _, claim := range claims {
		answer[claim.UID] = kubeletplugin.PrepareResult{}
	}
	return answer, nil
}

func (driver) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	answer := map[types.UID]error{}
	for _, claim := range claims {
		answer[claim.UID] = nil
	}
	return answer, nil
}

func (driver) HandleError(_ context.Context, err error, message string) {
	log.Printf("%s: %v", message, err)
}

func (driver) WatchHealthStatus(context.Context, chan<- kubeletplugin.DeviceHealthReport) error {
	return kubeletplugin.ErrHealthNotSupported
}

func numbers() (n, bad int) {
	n, bad = *devices, *tainted
	if text, err := os.ReadFile(*file); err == nil {
		fmt.Sscan(string(text), &n, &bad)
	}
	return n, bad
}

func list(n, bad int) []resource.Device {
	key, text, _ := strings.Cut(*attribute, "=")
	value := resource.DeviceAttribute{StringValue: &text}
	if yes := true; text == "true" {
		value = resource.DeviceAttribute{BoolValue: &yes}
	}
	answer := []resource.Device{}
	for i := range n {
		device := resource.Device{Name: fmt.Sprintf("device-%d", i), Attributes: map[resource.QualifiedName]resource.DeviceAttribute{resource.QualifiedName(key): value}}
		if i < bad {
			device.Taints = []resource.DeviceTaint{{Key: *name + "/unhealthy", Effect: resource.DeviceTaintEffectNoSchedule}}
		}
		answer = append(answer, device)
	}
	return answer
}

func main() {
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *access)
	if err != nil {
		log.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		log.Fatal(err)
	}
	data := filepath.Join(*dir, "plugins", *name)
	if err := os.MkdirAll(data, 0o750); err != nil {
		log.Fatal(err)
	}
	time.Sleep(*delay)
	helper, err := kubeletplugin.Start(context.Background(), driver{}, kubeletplugin.DriverName(*name), kubeletplugin.NodeName(*node),
		kubeletplugin.KubeClient(client), kubeletplugin.PluginDataDirectoryPath(data), kubeletplugin.RegistrarDirectoryPath(filepath.Join(*dir, "plugins_registry")))
	if err != nil {
		log.Fatal(err)
	}
	if *die > 0 {
		time.AfterFunc(*die, func() { log.Fatalf("%s: dies", *name) })
	}
	for last := ""; ; time.Sleep(100 * time.Millisecond) {
		n, bad := numbers()
		text := fmt.Sprint(n, bad)
		if text == last {
			continue
		}
		last = text
		log.Printf("%s: %d devices, %d with a taint", *name, n, bad)
		pools := map[string]resourceslice.Pool{*node: {Slices: []resourceslice.Slice{{Devices: list(n, bad)}}}}
		if err := helper.PublishResources(context.Background(), resourceslice.DriverResources{Pools: pools}); err != nil {
			log.Fatal(err)
		}
	}
}
