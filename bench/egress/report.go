package main

import (
	"fmt"
	"time"

	"github.com/bawn-dev/bawn/bench/measure"
)

// write adds the tables and how they stand to the goals.
func write(w *measure.Report, all results, l load) {
	for _, n := range all.Notes {
		w.Line("# %s", n)
	}
	everyone := []string{bare, ours, slirpName, pastaName, srtName}
	w.Line("\ndownload of %d MiB; × bare is speed; CPU is the relay's", l.Bytes>>20)
	w.Table([]string{"variant", "MB/s", "× bare", "relay CPU s/GiB"}, rows(everyone, all.Series[download], func(s, base measure.Series) []string {
		perGiB := s.CPU().Seconds() / float64(l.Bytes) * (1 << 30)
		return []string{fmt.Sprintf("%.0f", float64(l.Bytes)/1e6/s.Median().Seconds()), measure.Ratio(base, s).String(), fmt.Sprintf("%.2f", perGiB)}
	}))
	connecting := []string{bare, ours, oursName, oursMany, slirpName, pastaName, srtName}
	w.Line("\nnew connection and its first byte, then one byte each way on it; medians of %d connections", l.Connections)
	w.Table([]string{"variant", "connect + byte µs", "× bare", "relay CPU µs", "round trip µs", "× bare"}, rows(connecting, all.Series[connect], func(s, base measure.Series) []string {
		return []string{micros(s.Median()), measure.Ratio(s, base).String(), micros(s.CPU() / time.Duration(l.Connections))}
	}, all.Series[roundTrip]))
	w.Line("\n%d new connections, %d at a time, time per connection", l.Parallel, atOnce)
	w.Table([]string{"variant", "µs", "× bare"}, rows(everyone, all.Series[parallel], timed))
	w.Line("\nHTTPS on %d kept connections, %d requests; bawn opens TLS and decides on each request", callers, l.Requests)
	asking := []string{bare, proxyName, ours}
	for _, kind := range []string{requests, p50, p99} {
		series := all.Series[kind]
		w.Line("%s, µs", kind)
		w.Table([]string{"variant", "µs", "× reverse proxy"}, rows(asking, series, func(s, _ measure.Series) []string {
			return []string{micros(s.Median()), measure.Ratio(s, series[proxyName]).String()}
		}))
	}
	w.Line("\nset-up of the network: the time that it adds to a start")
	w.Table([]string{"variant", "ms"}, rows([]string{oursStart, oursOpened, slirpName, pastaName}, all.Series[setupTime], func(s, _ measure.Series) []string {
		return []string{measure.Milliseconds(s.Median())}
	}))
	w.Line("")
	goals(w, all.Series)
}

func timed(s, base measure.Series) []string {
	return []string{micros(s.Median()), measure.Ratio(s, base).String()}
}

// rows makes one row for each variant that was measured. More series are timed
// in columns of their own.
func rows(names []string, series map[string]measure.Series, cells func(s, base measure.Series) []string, more ...map[string]measure.Series) [][]string {
	var out [][]string
	for _, name := range names {
		if len(series[name]) == 0 {
			continue
		}
		row := append([]string{name}, cells(series[name], series[bare])...)
		for _, m := range more {
			row = append(row, timed(m[name], m[bare])...)
		}
		out = append(out, row)
	}
	return out
}

func micros(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d)/1e3) }

func goals(w *measure.Report, s map[string]map[string]measure.Series) {
	w.Goal("download, speed × bare", measure.Ratio(s[download][bare], s[download][ours]), measure.AtLeast(0.4))
	for _, peer := range []string{slirpName, pastaName, srtName} {
		w.Goal("download, speed × "+peer, measure.Ratio(s[download][peer], s[download][ours]), measure.AtLeast(1))
	}
	w.Goal("connect + first byte × bare", measure.Ratio(s[connect][ours], s[connect][bare]), measure.AtMost(3))
	w.Goal("connect + first byte, ms", measure.Value(s[connect][ours]), measure.AtMost(0.35))
	w.Goal("connect with 1,000 hosts × with 10", measure.Ratio(s[connect][oursMany], s[connect][ours]), measure.AtMost(1.05))
	w.Goal("set-up, ms", measure.Value(s[setupTime][oursStart]), measure.AtMost(6))
	w.Goal("requests P99 × reverse proxy", measure.Ratio(s[p99][ours], s[p99][proxyName]), measure.AtMost(1.5))
}
