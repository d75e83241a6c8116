package dockerapi

// A createRequest is what a guest may say of a container. What has to be empty
// but is sent by clients all the same, with a value that says nothing, is here
// as well; rules.go judges it.
type createRequest struct {
	common
	Hostname         string
	Domainname       string
	AttachStdin      bool
	AttachStdout     bool
	AttachStderr     bool
	ExposedPorts     map[string]struct{}
	HostConfig       hostRequest
	NetworkingConfig struct {
		EndpointsConfig map[string]*endpointRequest
	}
}

// common holds the fields that the engine gets as the guest wrote them.
type common struct {
	User        string              `json:",omitempty"`
	Tty         bool                `json:",omitempty"`
	OpenStdin   bool                `json:",omitempty"`
	StdinOnce   bool                `json:",omitempty"`
	Env         []string            `json:",omitempty"`
	Cmd         words               `json:",omitempty"`
	Entrypoint  words               `json:",omitempty"`
	Healthcheck *healthcheck        `json:",omitempty"`
	Image       string              `json:",omitempty"`
	Volumes     map[string]struct{} `json:",omitempty"`
	WorkingDir  string              `json:",omitempty"`
	Labels      map[string]string   `json:",omitempty"`
	StopSignal  string              `json:",omitempty"`
	StopTimeout *int                `json:",omitempty"`
	Shell       []string            `json:",omitempty"`
}

type healthcheck struct {
	Test          []string `json:",omitempty"`
	Interval      int64    `json:",omitempty"`
	Timeout       int64    `json:",omitempty"`
	Retries       int      `json:",omitempty"`
	StartPeriod   int64    `json:",omitempty"`
	StartInterval int64    `json:",omitempty"`
}

// A hostRequest is what a guest may say of the host's side.
type hostRequest struct {
	Binds           []string
	Mounts          []mountRequest
	Tmpfs           map[string]string
	NetworkMode     string
	PortBindings    map[string][]portBinding
	PublishAllPorts bool
	AutoRemove      bool
	Init            *bool
	ReadonlyRootfs  bool
	CapDrop         []string
	SecurityOpt     []string
	IpcMode         string
	CgroupnsMode    string
	Isolation       string
	LogConfig       struct {
		Type   string
		Config map[string]string
	}
	RestartPolicy struct {
		Name              string
		MaximumRetryCount int
	}
	Memory            int64
	MemorySwap        int64
	MemoryReservation int64
	MemorySwappiness  *int64
	NanoCpus          int64
	CPUShares         int64 `json:"CpuShares"`
	CPUPeriod         int64 `json:"CpuPeriod"`
	CPUQuota          int64 `json:"CpuQuota"`
	PidsLimit         *int64
	ShmSize           int64
	Ulimits           []ulimit
	OomScoreAdj       int
	ConsoleSize       [2]uint
}

type mountRequest struct {
	Type        string
	Source      string
	Target      string
	ReadOnly    bool
	Consistency string
	BindOptions struct {
		Propagation      string
		NonRecursive     bool
		CreateMountpoint bool
	}
	VolumeOptions struct {
		NoCopy       bool
		Labels       map[string]string
		DriverConfig struct {
			Name string
		}
	}
	TmpfsOptions struct {
		SizeBytes int64
		Mode      uint32
	}
}

type portBinding struct {
	HostIP   string `json:"HostIp"`
	HostPort string
}

type ulimit struct {
	Name string
	Soft int64
	Hard int64
}

// An endpointRequest says how a container is in a network.
type endpointRequest struct {
	Aliases   []string
	NetworkID string
}

// A createBody is what the engine is told. It has no field that is not set by
// rules.go.
type createBody struct {
	common
	HostConfig hostBody
}

type hostBody struct {
	Mounts         []mountBody       `json:",omitempty"`
	Tmpfs          map[string]string `json:",omitempty"`
	NetworkMode    string
	AutoRemove     bool  `json:",omitempty"`
	Init           *bool `json:",omitempty"`
	ReadonlyRootfs bool  `json:",omitempty"`
	CapDrop        []string
	CapAdd         []string
	SecurityOpt    []string
	IpcMode        string
	CgroupnsMode   string `json:",omitempty"`
	LogConfig      logBody
	RestartPolicy  struct{ Name string }
	Memory         int64    `json:",omitempty"`
	MemorySwap     int64    `json:",omitempty"`
	NanoCpus       int64    `json:",omitempty"`
	CPUShares      int64    `json:"CpuShares,omitempty"`
	PidsLimit      int64    `json:",omitempty"`
	ShmSize        int64    `json:",omitempty"`
	Ulimits        []ulimit `json:",omitempty"`
	OomScoreAdj    int      `json:",omitempty"`
}

type logBody struct {
	Type   string
	Config map[string]string `json:",omitempty"`
}

type mountBody struct {
	Type          string
	Source        string `json:",omitempty"`
	Target        string
	ReadOnly      bool        `json:",omitempty"`
	BindOptions   *bindBody   `json:",omitempty"`
	VolumeOptions *volumeBody `json:",omitempty"`
	TmpfsOptions  *tmpfsBody  `json:",omitempty"`
}

type bindBody struct {
	Propagation  string
	NonRecursive bool
}

type volumeBody struct {
	NoCopy bool              `json:",omitempty"`
	Labels map[string]string `json:",omitempty"`
}

type tmpfsBody struct {
	SizeBytes int64  `json:",omitempty"`
	Mode      uint32 `json:",omitempty"`
}
