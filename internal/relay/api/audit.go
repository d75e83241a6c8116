package api

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/audit"
	bawnv1 "github.com/bawn-dev/bawn/proto/bawn/v1"
	"github.com/bawn-dev/bawn/proto/bawn/v1/bawnv1connect"
)

// Limits of one look into the log.
const (
	defaultRecords = 100
	maxRecords     = 1000
	maxScan        = 200_000 // records read for one answer; the caller goes on from there
	maxFaults      = 20
	defaultBuckets = 60
	maxBuckets     = 1000
	disorder       = time.Hour // by which a record's time may lie before that of an earlier one
)

// audits reads the log.
type audits struct{ *API }

var _ bawnv1connect.AuditServiceHandler = (*audits)(nil)

// A sieve chooses records.
type sieve struct {
	audit.Filter
	prefix string // of the session
}

func (s sieve) fits(e bawn.Event) bool {
	return strings.HasPrefix(e.Session, s.prefix) && s.Match(e)
}

// sieveOf reads a filter.
func sieveOf(m *bawnv1.AuditFilter) sieve {
	s := sieve{prefix: m.GetSession(), Filter: audit.Filter{Agent: m.GetAgent(), Kind: m.GetKind(), Resource: m.GetResource()}}
	if m.GetVerdict() != bawnv1.Verdict_VERDICT_UNSPECIFIED {
		v := readVerdict(m.GetVerdict())
		s.Verdict = &v
	}
	if m.GetSince() != nil {
		s.Since = m.GetSince().AsTime()
	}
	if m.GetUntil() != nil {
		s.Until = m.GetUntil().AsTime()
	}
	return s
}

// backward yields the log's records, the newest first.
func (s *audits) backward() (iter.Seq2[audit.Entry, error], error) {
	if s.o.AuditDir == "" {
		return nil, missing("audit log")
	}
	return audit.Query(s.o.AuditDir, audit.Filter{NewestFirst: true}), nil
}

// Query is the service's.
func (s *audits) Query(ctx context.Context, m *bawnv1.AuditServiceQueryRequest) (*bawnv1.AuditServiceQueryResponse, error) {
	entries, err := s.backward()
	if err != nil {
		return nil, err
	}
	limit := int(m.GetLimit())
	if limit == 0 {
		limit = defaultRecords
	}
	limit = min(limit, maxRecords)
	wanted, out, scanned := sieveOf(m.GetFilter()), &bawnv1.AuditServiceQueryResponse{}, 0
	for entry, err := range entries {
		var fault *audit.Fault
		switch {
		case ctx.Err() != nil:
			return nil, inside(ctx.Err())
		case errors.As(err, &fault):
			if len(out.Faults) < maxFaults {
				out.Faults = append(out.Faults, line(fault.Error()))
			}
			continue
		case err != nil:
			return nil, inside(err)
		case m.GetBefore() != 0 && entry.Seq >= m.GetBefore():
			continue
		case entry.Event.Time.Before(wanted.Since.Add(-disorder)):
			return out, nil
		}
		if scanned++; wanted.fits(entry.Event) {
			if len(out.Records) == limit { // so there is one more
				out.Next = out.Records[limit-1].Seq
				return out, nil
			}
			out.Records = append(out.Records, recordOf(entry.Seq, entry.Event))
		}
		if scanned >= maxScan {
			out.Next = entry.Seq
			return out, nil
		}
	}
	return out, nil
}

// Timeline is the service's.
func (s *audits) Timeline(ctx context.Context, m *bawnv1.AuditServiceTimelineRequest) (*bawnv1.AuditServiceTimelineResponse, error) {
	entries, err := s.backward()
	if err != nil {
		return nil, err
	}
	wanted := sieveOf(m.GetFilter())
	if wanted.Until.IsZero() {
		wanted.Until = s.o.Now()
	}
	if wanted.Since.IsZero() {
		wanted.Since = wanted.Until.Add(-24 * time.Hour)
	}
	n := int(min(m.GetBuckets(), maxBuckets))
	if n == 0 {
		n = defaultBuckets
	}
	step := wanted.Until.Sub(wanted.Since) / time.Duration(n)
	if step <= 0 {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("from %s to %s is no time", wanted.Since.Format(time.RFC3339), wanted.Until.Format(time.RFC3339)))
	}
	out := &bawnv1.AuditServiceTimelineResponse{}
	for i := range n {
		out.Buckets = append(out.Buckets, &bawnv1.Bucket{Since: at(wanted.Since.Add(time.Duration(i) * step))})
	}
	scanned := 0
	for entry, err := range entries {
		if ctx.Err() != nil {
			return nil, inside(ctx.Err())
		}
		if scanned++; scanned > maxScan || err == nil && entry.Event.Time.Before(wanted.Since.Add(-disorder)) {
			break
		}
		if err == nil && wanted.fits(entry.Event) {
			count(out.Buckets[min(int(entry.Event.Time.Sub(wanted.Since)/step), n-1)], entry.Event)
		}
	}
	return out, nil
}

// count counts a record. Ends of sessions and the like are neither allowed nor
// denied.
func count(b *bawnv1.Bucket, e bawn.Event) {
	switch {
	case e.Kind == "session" || e.Kind == "audit" || e.Resolved == bawn.Ask:
		b.Other++
	case e.Resolved == bawn.Allow:
		b.Allowed++
	default:
		b.Denied++
	}
}

// Verify is the service's.
func (s *audits) Verify(context.Context, *bawnv1.AuditServiceVerifyRequest) (*bawnv1.AuditServiceVerifyResponse, error) {
	if s.o.AuditDir == "" {
		return nil, missing("audit log")
	}
	if !s.verify.TryLock() {
		return nil, connect.NewError(connect.CodeResourceExhausted, errors.New("the log is being checked already; wait"))
	}
	defer s.verify.Unlock()
	report, err := audit.Verify(s.o.AuditDir)
	if err != nil {
		return nil, inside(err)
	}
	out := &bawnv1.AuditServiceVerifyResponse{InOrder: report.Fault == nil, Records: report.Records, Hash: report.Hash}
	if report.Fault != nil {
		out.Fault = line(report.Fault.Error())
	}
	return out, nil
}
