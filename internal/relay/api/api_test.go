package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	bawnv1 "github.com/bawn-dev/bawn/proto/bawn/v1"
	"github.com/bawn-dev/bawn/proto/bawn/v1/bawnv1connect"
)

// methods are all of proto/bawn/v1 but those of AuthService, which is the web
// page's.
func methods(t *testing.T) []protoreflect.MethodDescriptor {
	t.Helper()
	var out []protoreflect.MethodDescriptor
	for _, f := range []protoreflect.FileDescriptor{
		bawnv1.File_bawn_v1_approval_proto, bawnv1.File_bawn_v1_session_proto, bawnv1.File_bawn_v1_audit_proto,
		bawnv1.File_bawn_v1_policy_proto, bawnv1.File_bawn_v1_device_proto, bawnv1.File_bawn_v1_system_proto, bawnv1.File_bawn_v1_undo_proto,
		bawnv1.File_bawn_v1_copy_proto,
	} {
		for i := range f.Services().Len() {
			s := f.Services().Get(i)
			for j := range s.Methods().Len() {
				out = append(out, s.Methods().Get(j))
			}
		}
	}
	return out
}

func procedure(m protoreflect.MethodDescriptor) string {
	return "/" + string(m.Parent().FullName()) + "/" + string(m.Name())
}

// TestEveryMethodHasARight: none is forgotten in the table, and without a
// caller each is refused.
func TestEveryMethodHasARight(t *testing.T) {
	r := newRig(t)
	all := methods(t)
	for _, m := range all {
		if rights[procedure(m)] == 0 {
			t.Errorf("%s has no right", procedure(m))
		}
		if code := call(t, r, http.DefaultClient, m); code != connect.CodeUnauthenticated {
			t.Errorf("%s without a caller: %v; want unauthenticated", procedure(m), code)
		}
	}
	if len(all) != len(rights) {
		t.Errorf("%d methods, %d rights", len(all), len(rights))
	}
	if (Caller{Name: "x"}).has(0) {
		t.Error("the zero right is held")
	}
}

// call calls a method with an empty message and returns what became of it.
func call(t *testing.T, r *rig, client *http.Client, m protoreflect.MethodDescriptor) connect.Code {
	t.Helper()
	c := connect.NewClient[dynamicpb.Message, dynamicpb.Message](client, r.url+procedure(m), connect.WithSchema(m),
		connect.WithResponseInitializer(func(_ connect.Spec, message any) error {
			*message.(*dynamicpb.Message) = *dynamicpb.NewMessage(m.Output())
			return nil
		}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var err error
	if m.IsStreamingServer() {
		var s *connect.ServerStreamForClient[dynamicpb.Message]
		if s, err = c.CallServerStream(ctx, connect.NewRequest(dynamicpb.NewMessage(m.Input()))); err == nil {
			s.Receive()
			err = s.Err()
			cancel()
			s.Close()
		}
	} else {
		_, err = c.CallUnary(ctx, connect.NewRequest(dynamicpb.NewMessage(m.Input())))
	}
	if err == nil {
		return 0
	}
	return connect.CodeOf(err)
}

// TestRights: what each caller may do, method by method. A permitted call reaches
// the method, which has nothing to work on here.
func TestRights(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Sessions = &terminal{} })
	for _, m := range methods(t) {
		p := procedure(m)
		for _, one := range []struct {
			caller Caller
			may    bool
		}{
			{human, rights[p] != remote && rights[p] != hand},
			{phone, rights[p] != local},
			{viewer, rights[p] == look && p != bawnv1connect.SessionServiceAttachProcedure || rights[p] == remote},
		} {
			code := call(t, r, r.as(one.caller), m)
			if (code != connect.CodePermissionDenied) != one.may {
				t.Errorf("%s by %q: %v; want allowed %v", p, one.caller.Name, code, one.may)
			}
			if !one.may && !r.records.has("refuse", strings.TrimPrefix(p, "/")) {
				t.Errorf("%s: the refusal is not recorded", p)
			}
		}
	}
}

// TestNoGet: Connect's GET requests are refused, which other sites can cause.
func TestNoGet(t *testing.T) {
	r := newRig(t)
	answer, err := r.as(human).Get(r.url + bawnv1connect.ApprovalServiceListProcedure + "?connect=v1&encoding=json&message=%7B%7D")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("status %d; want 405", answer.StatusCode)
	}
}

// TestJSON: the form that docs/dev/internals/relay-api.md describes, without any client's library.
func TestJSON(t *testing.T) {
	r := newRig(t)
	id, answer := r.ask(t)
	post := func(method, body string) (int, string) {
		t.Helper()
		answer, err := r.as(human).Post(r.url+"/bawn.v1."+method, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, strings.ReplaceAll(string(text), " ", "")
	}
	if status, text := post("ApprovalService/List", `{"pending":true}`); status != http.StatusOK ||
		!strings.Contains(text, `"id":"`+id+`","state":"APPROVAL_STATE_PENDING"`) || !strings.Contains(text, `"suggested":"VERDICT_ASK"`) {
		t.Errorf("%d %s", status, text)
	}
	if status, text := post("ApprovalService/Answer", `{"id":"`+id+`","verdict":"VERDICT_ALLOW","scope":"SCOPE_ONCE"}`); status != http.StatusOK || !strings.Contains(text, `"first":true`) {
		t.Errorf("%d %s", status, text)
	}
	if a := <-answer; a.By != "anna" {
		t.Errorf("answered by %q", a.By)
	}
	if status, text := post("ApprovalService/Get", `{"id":"nothing"}`); status != http.StatusNotFound || !strings.Contains(text, `"code":"not_found"`) {
		t.Errorf("%d %s", status, text)
	}
	if status, _ := post("ApprovalService/Answer", `{"id":"`+strings.Repeat("x", maxMessage)+`"}`); status != http.StatusTooManyRequests {
		t.Errorf("a large message: %d; want 429", status)
	}
}

// TestErrorsOfConnectPass: what callers are to be told stays as it is.
func TestErrorsOfConnectPass(t *testing.T) {
	told := connect.NewError(connect.CodeNotFound, errors.New("x"))
	for _, one := range []struct {
		err  error
		want connect.Code
	}{{told, connect.CodeNotFound}, {context.Canceled, connect.CodeCanceled}, {errors.New("disk"), connect.CodeInternal}} {
		if code := connect.CodeOf(inside(one.err)); code != one.want {
			t.Errorf("%v: %v; want %v", one.err, code, one.want)
		}
	}
	if inside(nil) != nil || reflect.ValueOf(inside(nil)).IsValid() {
		t.Error("no error becomes one")
	}
}
