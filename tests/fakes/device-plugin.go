// SPDX-License-Identifier: Apache-2.0

// A device plugin on the public interface of kubelet (k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1). Its devices exist in name only.
// tests/tools/kube.sh --plugins builds it.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

var (
	resource  = flag.String("resource", "nvidia.com/gpu", "name of the resource")
	devices   = flag.Int("devices", 8, "number of devices")
	unhealthy = flag.Int("unhealthy", 0, "how many of these are not healthy")
	file      = flag.String("file", "", "the two numbers, \"8 1\", in a file that may change")
	delay     = flag.Duration("delay", 0, "time before it registers")
	die       = flag.Duration("die", 0, "time from there to its end, 0: none; as after a crash, its socket stays")
	dir       = flag.String("dir", api.DevicePluginPath, "directory of the sockets")
)

type plugin struct {
	api.UnimplementedDevicePluginServer
}

func (plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

func list() *api.ListAndWatchResponse {
	n, bad := *devices, *unhealthy
	if text, err := os.ReadFile(*file); err == nil {
		fmt.Sscan(string(text), &n, &bad)
	}
	answer := &api.ListAndWatchResponse{}
	for i := range n {
		health := api.Healthy
		if i < bad {
			health = api.Unhealthy
		}
		answer.Devices = append(answer.Devices, &api.Device{ID: fmt.Sprintf("GPU-%d", i), Health: health})
	}
	return answer
}

func (plugin) ListAndWatch(_ *api.Empty, stream grpc.ServerStreamingServer[api.ListAndWatchResponse]) error {
	for last := ""; stream.Context().Err() == nil; time.Sleep(100 * time.Millisecond) {
		answer := list()
		if text := answer.String(); text != last {
			if err := stream.Send(answer); err != nil {
				return err
			}
			last = text
			log.Printf("%s: %d devices", *resource, len(answer.Devices))
		}
	}
	return nil
}

func (plugin) Allocate(_ context.Context, request *api.AllocateRequest) (*api.AllocateResponse, error) {
	answer := &api.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		ids := strings.Join(container.DevicesIds, ",")
		answer.ContainerResponses = append(answer.ContainerResponses, &api.ContainerAllocateResponse{Envs: map[string]string{"DEVICES": ids}})
	}
	return answer, nil
}

func main() {
	flag.Parse()
	socket := strings.ReplaceAll(*resource, "/", "-") + ".sock"
	os.Remove(filepath.Join(*dir, socket))
	listener, err := net.Listen("unix", filepath.Join(*dir, socket))
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, plugin{})
	go server.Serve(listener)

	time.Sleep(*delay)
	kubelet, err := grpc.NewClient("unix://"+filepath.Join(*dir, filepath.Base(api.KubeletSocket)), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	request := &api.RegisterRequest{Version: api.Version, Endpoint: socket, ResourceName: *resource}
	if _, err := api.NewRegistrationClient(kubelet).Register(context.Background(), request); err != nil {
		log.Fatal(err)
	}
	log.Printf("%s: registered", *resource)
	if *die > 0 {
		time.AfterFunc(*die, func() { log.Fatalf("%s: dies", *resource) })
	}
	select {}
}
