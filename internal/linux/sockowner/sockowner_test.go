package sockowner

import (
	"net/netip"
	"testing"
)

const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0000000000000000 100 0 0 10 0
   1: 0700FEC6:9C41 0900C6C6:01BB 01 00000000:00000000 00:00000000 00000000  1000        0 4712 1 0000000000000000 20 4 30 10 -1
   2: 0700FEC6:9C42 0900C6C6:01BB 06 00000000:00000000 00:00000000 00000000  1000        0 0 1
`

func TestInodeOf(t *testing.T) {
	for from, want := range map[string]string{"127.0.0.1:8080": "4711", "198.254.0.7:40001": "4712", "198.254.0.7:40002": "", "198.254.0.7:1": ""} {
		if got := inodeOf(table, netip.MustParseAddrPort(from)); got != want {
			t.Errorf("%s: %q, want %q", from, got, want)
		}
	}
	six := "  0: B80D0120000000000000000001000000:0050 00000000000000000000000000000000:0000 01 0:0 0:0 0 0 0 99 1\n"
	if got := inodeOf(six, netip.MustParseAddrPort("[2001:db8::1]:80")); got != "99" {
		t.Errorf("IPv6: %q", got)
	}
	mapped := "  0: 0000000000000000FFFF00000100007F:0050 0:0 01 0:0 0:0 0 0 0 98 1\n"
	if got := inodeOf(mapped, netip.MustParseAddrPort("127.0.0.1:80")); got != "98" {
		t.Errorf("mapped: %q", got)
	}
}

// TestDescribe names what a human has asked for, not the shells between.
func TestDescribe(t *testing.T) {
	for _, tt := range []struct {
		exe   string
		chain [][]string
		want  Program
	}{
		{"/usr/bin/curl", [][]string{{"curl", "x"}}, Program{Name: "curl"}},
		{"/usr/bin/curl", [][]string{{"curl"}, {"sh", "-c", "curl"}, {"npm", "test"}}, Program{"curl", "npm test"}},
		{"/usr/bin/curl", [][]string{{"curl"}, {"sh", "-c", "curl"}, {"npm", "test"}, {"/bin/bash", "-c", "npm test"}, {"claude"}}, Program{"curl", "npm test"}},
		{"/usr/bin/curl", [][]string{{"curl"}, {"/bin/bash", "-c", "curl x"}, {"claude"}}, Program{"curl", "claude"}},
		{"/usr/bin/curl", [][]string{nil, nil}, Program{Name: "curl"}},
	} {
		if got := describe(tt.exe, tt.chain); got != tt.want {
			t.Errorf("%q: %+v, want %+v", tt.chain, got, tt.want)
		}
	}
}

// FuzzInodeOf: the table is the kernel's; its reader still does not panic.
func FuzzInodeOf(f *testing.F) {
	f.Add(table)
	f.Fuzz(func(_ *testing.T, text string) { inodeOf(text, netip.MustParseAddrPort("127.0.0.1:80")) })
}
