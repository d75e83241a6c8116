package dockerapi

// forbidden says of the fields that people ask for most why no guest may set
// them. Every other field that is not known is refused as well.
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
