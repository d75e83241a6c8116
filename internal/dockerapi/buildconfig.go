package dockerapi

import (
	"archive/tar"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/bawn-dev/bawn/internal/dockerapi/dockerfile"
)

// configure does an instruction that only says something of later containers.
func (s *stage) configure(i *dockerfile.Instruction) error {
	c := &s.config
	switch i.Name {
	case "CMD":
		c.Cmd = c.command(i)
		return nil
	case "ENTRYPOINT":
		c.Entrypoint, c.Cmd = c.command(i), nil
		return nil
	case "SHELL":
		list, ok := i.Exec()
		if !ok || len(list) == 0 {
			return &dockerfile.Error{Line: i.Line, Why: `want SHELL ["program", "flag"]`}
		}
		c.Shell = list
		return nil
	case "HEALTHCHECK":
		return s.health(i)
	case "ENV", "LABEL":
		return s.pairs(i)
	}
	list, err := i.Words(s.variables())
	if err != nil {
		return err
	}
	switch i.Name {
	case "WORKDIR":
		return s.workdir(i, list)
	case "USER":
		c.User = strings.Join(list, " ")
	case "STOPSIGNAL":
		c.StopSignal = strings.Join(list, " ")
	case "EXPOSE":
		return s.expose(i, list)
	case "VOLUME":
		if c.Volumes == nil {
			c.Volumes = map[string]struct{}{}
		}
		for _, v := range list {
			c.Volumes[v] = struct{}{}
		}
		if len(c.Volumes) > maxMounts {
			return refuse(RuleLimit, "", "more than %d volumes", maxMounts)
		}
	default:
		return &dockerfile.Error{Line: i.Line, Why: i.Name + " is not served"}
	}
	return nil
}

func (s *stage) pairs(i *dockerfile.Instruction) error {
	names, values, err := i.Pairs(s.variables())
	if err != nil {
		return err
	}
	for _, n := range names {
		if i.Name == "LABEL" {
			s.config.labelled()[n] = *values[n]
		} else {
			s.config.setEnv(n, *values[n])
		}
	}
	if err := checkArgs(s.config.Env); err != nil {
		return err
	}
	return checkLabels(s.config.Labels)
}

func (c *imageConfig) setEnv(name, value string) {
	begin := name + "="
	for n, e := range c.Env {
		if strings.HasPrefix(e, begin) {
			c.Env[n] = begin + value
			return
		}
	}
	c.Env = append(c.Env, begin+value)
}

// workdir makes the directory as well, if it is not there.
func (s *stage) workdir(i *dockerfile.Instruction, list []string) error {
	if len(list) != 1 {
		return &dockerfile.Error{Line: i.Line, Why: "WORKDIR takes one directory"}
	}
	dir := list[0]
	if !path.IsAbs(dir) {
		dir = path.Join("/", s.config.WorkingDir, dir)
	}
	s.config.WorkingDir = path.Clean(dir)
	if err := checkDir(s.config.WorkingDir); err != nil {
		return err
	}
	empty := &fileSet{files: map[string]*setFile{"d": {header: &tar.Header{Typeflag: tar.TypeDir, Mode: 0o755}}}} // no contents
	s.copies = append(s.copies, fileCopy{from: empty, names: []string{"d"}, to: s.config.WorkingDir, unlessThere: true})
	return nil
}

func (s *stage) expose(i *dockerfile.Instruction, list []string) error {
	if s.config.ExposedPorts == nil {
		s.config.ExposedPorts = map[string]struct{}{}
	}
	for _, p := range list {
		port, proto, err := readPort(p)
		if err != nil || !oneOf(proto, "tcp", "udp", "sctp") {
			return &dockerfile.Error{Line: i.Line, Why: fmt.Sprintf("%.50q is no port", p)}
		}
		s.config.ExposedPorts[strconv.Itoa(int(port))+"/"+proto] = struct{}{}
	}
	if len(s.config.ExposedPorts) > maxPorts*4 {
		return refuse(RuleLimit, "", "more than %d ports", maxPorts*4)
	}
	return nil
}

func (s *stage) health(i *dockerfile.Instruction) error {
	if i.Rest == "NONE" {
		s.config.Healthcheck = &healthcheck{Test: []string{"NONE"}}
		return nil
	}
	text, ok := strings.CutPrefix(i.Rest, "CMD ")
	if !ok {
		return &dockerfile.Error{Line: i.Line, Why: "want HEALTHCHECK CMD …, or HEALTHCHECK NONE"}
	}
	command := &dockerfile.Instruction{Line: i.Line, Name: "CMD", Rest: strings.TrimSpace(text)}
	h := &healthcheck{Test: []string{"CMD-SHELL", command.Rest}}
	if list, ok := command.Exec(); ok {
		h.Test = append([]string{"CMD"}, list...)
	}
	for name, to := range map[string]*int64{"interval": &h.Interval, "timeout": &h.Timeout, "start-period": &h.StartPeriod} {
		if v := i.Flags[name]; v != "" {
			d, err := time.ParseDuration(v)
			if err != nil || d < 0 {
				return &dockerfile.Error{Line: i.Line, Why: fmt.Sprintf("--%s=%.50s is no duration", name, v)}
			}
			*to = int64(d)
		}
	}
	if v := i.Flags["retries"]; v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return &dockerfile.Error{Line: i.Line, Why: fmt.Sprintf("--retries=%.50s is no number", v)}
		}
		h.Retries = n
	}
	s.config.Healthcheck = h
	return nil
}
