package dockerapi

import (
	"reflect"
	"strings"
)

// obeyed are the fields of an object that engines obey and no guest may set. A
// field that is neither here nor in the structure is ignored by engines, and
// dropped. In objects that are not listed every unknown field is refused.
var obeyed = map[reflect.Type][]string{
	reflect.TypeFor[createRequest](): strings.Fields("ArgsEscaped NetworkDisabled MacAddress OnBuild"),
	reflect.TypeFor[hostRequest](): strings.Fields("ContainerIDFile VolumeDriver VolumesFrom Annotations CapAdd Capabilities Dns DnsOptions DnsSearch " +
		"ExtraHosts GroupAdd Cgroup CgroupParent Links PidMode Privileged StorageOpt UTSMode UsernsMode Sysctls Runtime MaskedPaths ReadonlyPaths " +
		"BlkioWeight BlkioWeightDevice BlkioDeviceReadBps BlkioDeviceWriteBps BlkioDeviceReadIOps BlkioDeviceWriteIOps " +
		"CpuRealtimePeriod CpuRealtimeRuntime CpusetCpus CpusetMems Devices DeviceCgroupRules DeviceRequests " +
		"KernelMemory KernelMemoryTCP OomKillDisable CpuCount CpuPercent IOMaximumIOps IOMaximumBandwidth"),
	reflect.TypeFor[endpointRequest](): strings.Fields("IPAMConfig Links MacAddress DriverOpts GwPriority"),
	reflect.TypeFor[networkRequest]():  strings.Fields("Ingress ConfigOnly ConfigFrom"),
	reflect.TypeFor[connectRequest]():  nil,
	reflect.TypeFor[volumeRequest]():   strings.Fields("DriverOpts ClusterVolumeSpec"),
	reflect.TypeFor[execRequest]():     strings.Fields("Privileged"),
	reflect.TypeFor[execStart]():       nil,
}

// ignored reports whether engines ignore a field of that name, in any case, in
// objects of type t.
func ignored(t reflect.Type, name string) bool {
	list, ok := obeyed[t]
	if !ok {
		return false
	}
	for _, n := range list {
		if strings.EqualFold(n, name) {
			return false
		}
	}
	return true
}

// forbidden says of the fields that people ask for most why no guest may set
// them.
var forbidden = map[string]string{
	"HostConfig.Privileged":        "a privileged container is root on the host",
	"HostConfig.CapAdd":            "capabilities reach beyond the container",
	"HostConfig.Devices":           "devices are the host's",
	"HostConfig.DeviceRequests":    "devices are the host's",
	"HostConfig.DeviceCgroupRules": "devices are the host's",
	"HostConfig.PidMode":           "the processes of the host and of other containers are not the guest's",
	"HostConfig.UTSMode":           "the host's name is not the guest's",
	"HostConfig.UsernsMode":        "the engine's user namespace stays as it is set",
	"HostConfig.Cgroup":            "groups of other containers are not the guest's",
	"HostConfig.CgroupParent":      "limits hang on the group that Bawn chooses",
	"HostConfig.Sysctls":           "the kernel's settings are not the guest's",
	"HostConfig.Runtime":           "another runtime may isolate less",
	"HostConfig.VolumesFrom":       "mounts of other containers are not the guest's",
	"HostConfig.VolumeDriver":      "a driver can mount anything",
	"HostConfig.Links":             "links reach into other containers; use a network and its aliases",
	"HostConfig.StorageOpt":        "the engine's storage is not the guest's",
	"HostConfig.GroupAdd":          "groups may own files of the host",
	"HostConfig.MaskedPaths":       "what the engine covers stays covered",
	"HostConfig.ReadonlyPaths":     "what the engine protects stays protected",
	"HostConfig.OomKillDisable":    "limits have to hold",
	"HostConfig.ExtraHosts":        "names lead to the session's own containers only",
	"HostConfig.Dns":               "names are resolved by the session's own resolver",
}
