package api

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/audit"
	bawnv1 "github.com/bawn-dev/bawn/proto/bawn/v1"
	"github.com/bawn-dev/bawn/proto/bawn/v1/bawnv1connect"
)

// logOf writes a log of n events, a minute apart, the last at end.
func logOf(t *testing.T, n int, end time.Time) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "audit")
	l, err := audit.Open(dir, audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		e := bawn.Event{Time: end.Add(-time.Duration(n-1-i) * time.Minute), Session: "s" + fmt.Sprint(i%2), Kind: "command", Operation: "exec", Resource: fmt.Sprint("make ", i), Resolved: bawn.Allow}
		if i%5 == 0 {
			e.Resolved = bawn.Deny
		}
		if err := l.Record(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func auditOf(t *testing.T, dir string) bawnv1connect.AuditServiceClient {
	t.Helper()
	r := newRig(t, func(o *Options) { o.AuditDir = dir })
	return bawnv1connect.NewAuditServiceClient(r.as(viewer), r.url)
}

// TestAuditPages: page by page each record comes once, the newest first.
func TestAuditPages(t *testing.T) {
	c := auditOf(t, logOf(t, 25, time.Now()))
	for name, one := range map[string]struct {
		filter *bawnv1.AuditFilter
		want   int
	}{
		"all":        {nil, 25},
		"a session":  {&bawnv1.AuditFilter{Session: "s1"}, 12},
		"its prefix": {&bawnv1.AuditFilter{Session: "s"}, 25},
		"denied":     {&bawnv1.AuditFilter{Verdict: bawnv1.Verdict_VERDICT_DENY}, 5},
		"a resource": {&bawnv1.AuditFilter{Resource: "make 1*"}, 11},
		"lately":     {&bawnv1.AuditFilter{Since: timestamppb.New(time.Now().Add(-4*time.Minute - 30*time.Second))}, 5},
		"before":     {&bawnv1.AuditFilter{Until: timestamppb.New(time.Now().Add(-20*time.Minute - 30*time.Second))}, 4},
		"none":       {&bawnv1.AuditFilter{Kind: "network"}, 0},
	} {
		seen, last := 0, uint64(1<<62)
		for before, pages := uint64(0), 0; ; pages++ {
			m, err := c.Query(t.Context(), &bawnv1.AuditServiceQueryRequest{Filter: one.filter, Limit: 4, Before: before})
			if err != nil || pages > 20 {
				t.Fatal(err)
			}
			for _, r := range m.GetRecords() {
				if r.GetSeq() >= last {
					t.Errorf("%s: record %d after %d", name, r.GetSeq(), last)
				}
				seen, last = seen+1, r.GetSeq()
			}
			if before = m.GetNext(); before == 0 {
				break
			}
		}
		if seen != one.want {
			t.Errorf("%s: %d records; want %d", name, seen, one.want)
		}
	}
}

func TestTimeline(t *testing.T) {
	end := time.Now().Truncate(time.Second)
	c := auditOf(t, logOf(t, 20, end.Add(-30*time.Second)))
	m, err := c.Timeline(t.Context(), &bawnv1.AuditServiceTimelineRequest{Buckets: 4, Filter: &bawnv1.AuditFilter{Since: timestamppb.New(end.Add(-20 * time.Minute)), Until: timestamppb.New(end)}})
	if err != nil || len(m.GetBuckets()) != 4 {
		t.Fatalf("%v %v", m, err)
	}
	for i, b := range m.GetBuckets() {
		if b.GetAllowed() != 4 || b.GetDenied() != 1 || b.GetOther() != 0 {
			t.Errorf("bucket %d: %v; want 4 allowed, 1 denied", i, b)
		}
	}
	if _, err := c.Timeline(t.Context(), &bawnv1.AuditServiceTimelineRequest{Filter: &bawnv1.AuditFilter{Since: timestamppb.New(end), Until: timestamppb.New(end)}}); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("no time: %v", err)
	}
}

// TestAuditVerify: a log in order is said to be, one that was changed is not,
// and the broken line is told by Query as well.
func TestAuditVerify(t *testing.T) {
	dir := logOf(t, 5, time.Now())
	c := auditOf(t, dir)
	if m, err := c.Verify(t.Context(), &bawnv1.AuditServiceVerifyRequest{}); err != nil || !m.GetInOrder() || m.GetRecords() != 5 {
		t.Errorf("%v %v", m, err)
	}
	path := filepath.Join(dir, "log.jsonl")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text[200] ^= 1
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if m, err := c.Verify(t.Context(), &bawnv1.AuditServiceVerifyRequest{}); err != nil || m.GetInOrder() || m.GetFault() == "" {
		t.Errorf("%v %v; want a fault", m, err)
	}
	if m, err := c.Query(t.Context(), &bawnv1.AuditServiceQueryRequest{}); err != nil || len(m.GetFaults()) != 1 || len(m.GetRecords()) != 4 {
		t.Errorf("%v %v; want one fault", m, err)
	}
}
