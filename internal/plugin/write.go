package plugin

import (
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// Text writes the manifest as a file that Parse reads.
func (m *Manifest) Text() ([]byte, error) {
	l := m.Limits
	d := document{Name: m.Name, Kind: m.statedKind(), Version: m.Version, About: m.About, Run: m.Run, Files: m.Files, Hosts: m.Hosts,
		Secrets: m.Secrets, Env: m.Env, Tools: m.Tools, Arguments: m.Arguments, Hook: m.Hook.document()}
	d.Limits = limits{PIDs: stated(l.PIDs), CPU: stated(l.CPUs), CallsAtOnce: stated(int64(l.CallsAtOnce))}
	if l.MemoryMB != 0 {
		d.Limits.Memory = stated(fmt.Sprintf("%dm", l.MemoryMB))
	}
	if l.ResultBytes != 0 {
		d.Limits.Result = stated(fmt.Sprintf("%db", l.ResultBytes))
	}
	if l.Time != 0 {
		d.Limits.Time = stated(l.Time.String())
	}
	var b strings.Builder
	err := toml.NewEncoder(&b).Encode(d)
	return []byte(b.String()), err
}

// stated points at a value, nil for the zero one.
func stated[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}
