package egressd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/egress"
	"github.com/bawn-dev/bawn/internal/egress/mitm"
	"github.com/bawn-dev/bawn/internal/secrets"
)

// TestUseIsRecordedByName: the log says which secrets were put in.
func TestUseIsRecordedByName(t *testing.T) {
	a := newSite(t, bawn.Egress{HTTP: []string{"forge.example GET /**"}})
	s := a.requests.session
	a.requests.done(mitm.Request{Method: "GET", Scheme: "https", Host: "forge.example", Port: 443, Path: "/x"}, mitm.Result{Status: 200, Secrets: []string{"deploy-key"}})
	if err := s.log.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(s.config.AuditDir, "log.jsonl"))
	if err != nil || !strings.Contains(string(text), "deploy-key") {
		t.Errorf("%v, %s", err, text)
	}
}

// TestVaultKeyIsHidden: an identity file that lies where the guest may read is
// covered. The descriptor of a passphrase that bawn run has is not taken for
// one of bawnd's, which may be its connection to bawn run.
func TestVaultKeyIsHidden(t *testing.T) {
	home := t.TempDir()
	id, err := age.GenerateX25519Identity()
	key := filepath.Join(home, "identity")
	if err != nil || os.WriteFile(key, []byte(id.String()+"\n"), 0o600) != nil {
		t.Fatal(err)
	}
	env := environ{"HOME=" + home, secrets.PassphraseFD + "=3"}
	o, err := secrets.Standard(ownDescriptor(env), "")
	if err != nil {
		t.Fatal(err)
	}
	o.Store, o.Identity, o.Passphrase = secrets.File, key, nil
	v, err := secrets.Open(o)
	if err == nil {
		err = v.Set(t.Context(), "tok", bawn.NewSecret([]byte("a-value-of-some-length")))
	}
	if err == nil {
		err = v.Bind(t.Context(), bawn.Binding{Secret: "tok", Host: "api.example", Place: bawn.Bearer, Env: "TOK"})
	}
	if err != nil {
		t.Fatal(err)
	}
	v.Close()
	o.Identity = ""
	if v, err = secrets.Open(o); err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	place := filepath.Join(home, "place")
	if err := os.Mkdir(place, 0o700); err != nil {
		t.Fatal(err)
	}
	s := &session{config: egress.Config{Home: home, Place: place}, env: env, vault: v}
	if s.bindings, err = v.Bindings(t.Context(), []string{"tok"}); err != nil {
		t.Fatal(err)
	}
	if err := s.placeMasks(); err != nil {
		t.Fatal(err)
	}
	real, err := filepath.EvalSymlinks(key)
	if err != nil || len(s.ready.Files) != 1 || s.ready.Files[0].Target != real {
		t.Fatalf("%v: covered %+v; want %q", err, s.ready.Files, real)
	}
	if text, err := os.ReadFile(s.ready.Files[0].Source); err != nil || len(text) != 0 {
		t.Errorf("%v: covered by %q", err, text)
	}
	for _, e := range ownDescriptor(env) {
		if strings.HasPrefix(e, secrets.PassphraseFD) {
			t.Errorf("the environment still has %q", e)
		}
	}
}
