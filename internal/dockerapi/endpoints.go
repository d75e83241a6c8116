package dockerapi

import "strings"

// endpoints is the allow-list: what is not here is refused. The parameters are
// those that a guest may give; docs/docker-api.md explains them.
var endpoints = append(served, explained...)

var served = []endpoint{
	{"GET", "_ping", "", (*Broker).ping},
	{"HEAD", "_ping", "", (*Broker).ping},
	{"GET", "version", "", (*Broker).versionOf},
	{"GET", "info", "", (*Broker).info},
	{"GET", "events", "filters since until", (*Broker).events},

	{"GET", "containers/json", "all filters limit size", whole((*Broker).listContainers)},
	{"POST", "containers/create", "name platform", (*Broker).createContainer},
	{"POST", "containers/prune", "filters", (*Broker).pruneContainers},
	{"GET", "containers/{id}/json", "size", whole((*Broker).inspectContainer)},
	{"GET", "containers/{id}/logs", "follow stdout stderr since until timestamps tail", follow("GET", "logs", "follow", "stdout", "stderr", "since", "until", "timestamps", "tail")},
	{"GET", "containers/{id}/stats", "stream one-shot", (*Broker).stats},
	{"GET", "containers/{id}/top", "", whole((*Broker).top)},
	{"GET", "containers/{id}/changes", "", follow("GET", "changes")},
	{"POST", "containers/{id}/wait", "condition", (*Broker).waitContainer},
	{"POST", "containers/{id}/start", "", (*Broker).startContainer},
	{"POST", "containers/{id}/stop", "t signal", lifetime("stop", createTime)},
	{"POST", "containers/{id}/kill", "signal", lifetime("kill", shortTime)},
	{"POST", "containers/{id}/pause", "", lifetime("pause", shortTime)},
	{"POST", "containers/{id}/unpause", "", lifetime("unpause", shortTime)},
	{"POST", "containers/{id}/restart", "t signal", (*Broker).restartContainer},
	{"POST", "containers/{id}/rename", "name", (*Broker).renameContainer},
	{"POST", "containers/{id}/resize", "h w", lifetime("resize", shortTime)},
	{"POST", "containers/{id}/attach", "logs stream stdin stdout stderr detachKeys", (*Broker).attach},
	{"POST", "containers/{id}/exec", "", (*Broker).createExec},
	{"GET", "containers/{id}/archive", "path", (*Broker).archive},
	{"HEAD", "containers/{id}/archive", "path", (*Broker).archive},
	{"PUT", "containers/{id}/archive", "path noOverwriteDirNonDir copyUIDGID", (*Broker).archive},
	{"DELETE", "containers/{id}", "v force", (*Broker).removeContainer},

	{"POST", "exec/{id}/start", "", (*Broker).startExec},
	{"POST", "exec/{id}/resize", "h w", (*Broker).resizeExec},
	{"GET", "exec/{id}/json", "", (*Broker).inspectExec},

	{"POST", "build", builds, (*Broker).buildImage},
	{"DELETE", "images/{image}", "force noprune", (*Broker).removeImage},
	{"GET", "images/json", "all filters digests shared-size", whole((*Broker).listImages)},
	{"POST", "images/create", "fromImage fromSrc tag platform", (*Broker).pullImage},
	{"GET", "images/{image}/json", "", whole((*Broker).inspectImage)},

	{"GET", "networks", "filters", (*Broker).listNetworks},
	{"POST", "networks/create", "", (*Broker).createNetwork},
	{"POST", "networks/prune", "filters", (*Broker).pruneNetworks},
	{"GET", "networks/{id}", "verbose scope", (*Broker).inspectNetwork},
	{"DELETE", "networks/{id}", "", (*Broker).removeNetwork},
	{"POST", "networks/{id}/connect", "", (*Broker).connectNetwork},
	{"POST", "networks/{id}/disconnect", "", (*Broker).disconnectNetwork},

	{"GET", "volumes", "filters", whole((*Broker).listVolumes)},
	{"POST", "volumes/create", "", (*Broker).createVolume},
	{"POST", "volumes/prune", "filters", (*Broker).pruneVolumes},
	{"GET", "volumes/{id}", "", (*Broker).inspectVolume},
	{"DELETE", "volumes/{id}", "force", (*Broker).removeVolume},
}

// unserved are parameters that engines obey and no guest may give. Others that
// an endpoint does not have are dropped: engines ignore them.
var unserved = strings.Fields("link checkpoint checkpoint-dir ps_args repo message changes manifests")

const (
	builds = "dockerfile t q nocache cachefrom pull rm forcerm buildargs labels networkmode target version"
	// buildUnserved are parameters of a build that engines obey and no guest may
	// give.
	buildUnserved = "remote squash outputs extrahosts platform memory memswap cpusetcpus cpusetmems cpuperiod cpuquota cgroupparent session"
)

// explained are requests that people miss, with the reason.
var explained = []endpoint{
	{"POST", "session", "", refuseAlways("BuildKit is not served: its sessions reach files, secrets and agents of the client; the classic builder is", "set DOCKER_BUILDKIT=0")},
	{"POST", "grpc", "", refuseAlways("BuildKit is not served: its sessions reach files, secrets and agents of the client; the classic builder is", "set DOCKER_BUILDKIT=0")},
	{"POST", "commit", "container repo tag comment author pause changes", refuseAlways("an image would outlive the session", "")},
	{"POST", "images/load", "quiet", refuseAlways("an image would outlive the session", "load it outside (docker load)")},
	// "docker inspect NAME" asks for all of them.
	{"GET", "services/{id}", "insertDefaults", never("service")},
	{"GET", "tasks/{id}", "", never("task")},
	{"GET", "nodes/{id}", "", never("node")},
	{"GET", "plugins/{id}/json", "", never("plugin")},
	{"GET", "secrets/{id}", "", never("secret")},
	{"GET", "configs/{id}", "", never("config")},
	{"POST", "auth", "", refuseAlways("no guest has credentials of registries", "log in outside")},
	{"POST", "containers/{id}/update", "", refuseAlways("limits of a container that exists stay as they are", "make another")},
	{"GET", "containers/{id}/attach/ws", "", refuseAlways("streams over WebSockets are not served", "use attach")},
}
