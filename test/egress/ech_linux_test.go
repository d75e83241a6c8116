package egress_test

import (
	"bytes"
	"crypto/ecdh"
	"crypto/tls"
	"encoding/binary"
)

// echKey is the outside's key for hidden names, which the world knows.
func echKey() *ecdh.PrivateKey {
	key, err := ecdh.X25519().NewPrivateKey(bytes.Repeat([]byte{0x42}, 32))
	if err != nil {
		panic(err)
	}
	return key
}

// echConfig is one ECHConfig (RFC 9849, section 4) for X25519, HKDF-SHA256
// and AES-128-GCM, behind the name outer.
func echConfig(outer string) []byte {
	key := echKey().PublicKey().Bytes()
	c := []byte{7, 0x00, 0x20}
	c = append(binary.BigEndian.AppendUint16(c, uint16(len(key))), key...)
	c = append(c, 0, 4, 0, 1, 0, 1, 0, byte(len(outer)))
	c = append(append(c, outer...), 0, 0)
	return append(binary.BigEndian.AppendUint16([]byte{0xfe, 0x0d}, uint16(len(c))), c...)
}

func echConfigList(outer string) []byte {
	c := echConfig(outer)
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(c))), c...)
}

// echKeys let a server read what is hidden behind allowed.test.
func echKeys() []tls.EncryptedClientHelloKey {
	return []tls.EncryptedClientHelloKey{{Config: echConfig("allowed.test"), PrivateKey: echKey().Bytes(), SendAsRetry: true}}
}
