package cgroup

import (
	"fmt"
	"strconv"
	"strings"
)

// A setting is one value written to one file of a new group.
type setting struct {
	file, value string
	optional    bool // the file may be absent: an older kernel, or no swap accounting
}

// swapFiles limit swap; where they are absent a guest may use swap on top.
var swapFiles = [3]string{1: "memory.memsw.limit_in_bytes", 2: "memory.swap.max"}

// settings returns what enforces l's limits of one controller
// (Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst), in writing order.
func settings(controller string, version int, l Limits) []setting {
	switch controller {
	case memory:
		return memorySettings(version, l.MemoryMB)
	case pids:
		if l.PIDs != 0 {
			return []setting{{file: "pids.max", value: strconv.FormatInt(l.PIDs, 10)}}
		}
	case cpu:
		return append(weightSettings(version, l.CPUShares), quotaSettings(version, l.CPUs)...)
	}
	return nil
}

func memorySettings(version int, mb int64) []setting {
	if mb == 0 {
		return nil
	}
	bytes := strconv.FormatInt(mb*bytesPerMB, 10)
	if version == 1 {
		return []setting{
			{file: "memory.limit_in_bytes", value: bytes},
			{file: swapFiles[1], value: bytes, optional: true}, // memory and swap together
		}
	}
	return []setting{
		{file: "memory.max", value: bytes},
		{file: swapFiles[2], value: "0", optional: true},
		{file: "memory.oom.group", value: "1", optional: true},
	}
}

// weightSettings keeps the ratio to everybody's weight: 1024 shares in
// version 1, 100 in version 2.
func weightSettings(version int, shares int64) []setting {
	switch {
	case shares == 0:
		return nil
	case version == 1:
		return []setting{{file: "cpu.shares", value: strconv.FormatInt(shares, 10)}}
	}
	weight := min(max(shares*100/1024, 1), 10_000)
	return []setting{{file: "cpu.weight", value: strconv.FormatInt(weight, 10)}}
}

func quotaSettings(version int, cpus float64) []setting {
	if cpus == 0 {
		return nil
	}
	quota := int64(cpus * cfsPeriod)
	if version == 2 {
		return []setting{{file: "cpu.max", value: fmt.Sprintf("%d %d", quota, cfsPeriod)}}
	}
	return []setting{
		{file: "cpu.cfs_period_us", value: strconv.Itoa(cfsPeriod)},
		{file: "cpu.cfs_quota_us", value: strconv.FormatInt(quota, 10)},
	}
}

// parseMax reads a limit file. "max", or a negative number in version 1, means no
// limit and reads 0. A limit of 0 reads 1, since no Limits field can say it.
func parseMax(text string) (int64, error) {
	text = strings.TrimSpace(text)
	if text == "max" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("limit %q is neither a number nor \"max\"", text)
	}
	if n < 0 {
		return 0, nil
	}
	return max(n, 1), nil
}

// parseCPUMax reads cpu.max: "QUOTA PERIOD" in µs, as cores; 0 is no limit.
func parseCPUMax(text string) (float64, error) {
	quotaText, periodText, ok := strings.Cut(strings.TrimSpace(text), " ")
	if !ok {
		return 0, fmt.Errorf("cpu.max %q is not a quota and a period", text)
	}
	quota, err := parseMax(quotaText)
	if err != nil {
		return 0, err
	}
	period, err := strconv.ParseInt(periodText, 10, 64)
	if err != nil || period <= 0 {
		return 0, fmt.Errorf("cpu period %q is not a positive number", periodText)
	}
	return float64(quota) / float64(period), nil
}

// parseCounter returns the number after key in a file of "key number" lines.
func parseCounter(text, key string) (int64, error) {
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || name != key {
			continue
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 0 {
			return 0, fmt.Errorf("counter %q has value %q, not a number", key, value)
		}
		return n, nil
	}
	return 0, fmt.Errorf("no counter %q", key)
}

// parseCount reads a file that holds one count.
func parseCount(text string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("count %q is not a number", text)
	}
	return n, nil
}

// parsePIDs reads cgroup.procs. A process outside the reader's pid namespace
// is listed as 0.
func parsePIDs(text string) ([]int, error) {
	var list []int
	for line := range strings.Lines(text) {
		n, err := strconv.ParseInt(strings.TrimSuffix(line, "\n"), 10, 32)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("process id %q is not a number", strings.TrimSpace(line))
		}
		list = append(list, int(n))
	}
	return list, nil
}
