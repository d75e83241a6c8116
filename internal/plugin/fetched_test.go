package plugin

import (
	"testing"
)

// TestComplete: a plugin needs no registry once exactly what it runs was there,
// and does again once its pins are forgotten.
func TestComplete(t *testing.T) {
	d := Dirs{Pins: t.TempDir()}
	m := parsed(t, `run.npx = "server@1.2.3"`)
	newer := parsed(t, `run.npx = "server@1.2.4"`)
	if d.Complete(m) || !d.Complete(parsed(t, `run.command = ["/bin/server"]`)) {
		t.Error("what is fetched is there before, or what is not fetched is not")
	}
	if err := d.SetComplete(m); err != nil {
		t.Fatal(err)
	}
	if !d.Complete(m) || d.Complete(newer) {
		t.Errorf("complete %t, in another version %t", d.Complete(m), d.Complete(newer))
	}
	if err := RemovePins(d.Pins, m.Name); err != nil {
		t.Fatal(err)
	}
	if d.Complete(m) {
		t.Error("it is complete without pins")
	}
	if err := RemovePins(d.Pins, m.Name); err != nil {
		t.Error(err)
	}
}
