package gateway

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// Servers that speak for themselves, without the SDK.

// request is what such a server reads of a message.
type request struct {
	ID     any    `json:"id"`
	Method string `json:"method"`
}

// converse answers each request with what f returns, as the result's JSON.
func converse(f func(method string) string) { converseUntil("", f) }

// converseUntil does so up to the first request of a method.
func converseUntil(last string, f func(method string) string) {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var r request
		if json.Unmarshal(in.Bytes(), &r) != nil || r.ID == nil {
			continue
		}
		id, _ := json.Marshal(r.ID)
		result := f(r.Method)
		if result == "" {
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`+"\n", id)
			continue
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, result)
		if r.Method == last {
			return
		}
	}
}

const hello = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`

const echoTool = `{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`

// flood says more than anybody reads, once it is called.
func flood() {
	converse(func(method string) string {
		switch method {
		case "initialize":
			return hello
		case "tools/list":
			return echoTool
		case "tools/call":
			line := `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}` + "\n"
			for {
				if _, err := os.Stdout.WriteString(strings.Repeat(line, 100)); err != nil {
					os.Exit(1)
				}
			}
		}
		return ""
	})
}

// deaf reads nothing more once it has said what it has.
func deaf() {
	converseUntil("tools/list", func(method string) string {
		return map[string]string{"initialize": hello, "tools/list": echoTool}[method]
	})
	time.Sleep(time.Hour)
}

// endless has a list of tools without an end.
func endless() {
	n := 0
	converse(func(method string) string {
		switch method {
		case "initialize":
			return hello
		case "tools/list":
			n++
			return fmt.Sprintf(`{"tools":[{"name":"t%d","inputSchema":{"type":"object"}}],"nextCursor":"%d"}`, n, n)
		}
		return ""
	})
}

// twofold lists tools of which two readers read two things.
func twofold() {
	converse(func(method string) string {
		switch method {
		case "initialize":
			return hello
		case "tools/list":
			return `{"tools":[{"name":"echo","inputSchema":{"type":"object"}},` +
				`{"name":"capitals","description":"evil","Description":"good","inputSchema":{"type":"object"}},` +
				`{"name":"twice","description":"evil","description":"good","inputSchema":{"type":"object"}},` +
				`{"name":"echo2","inputSchema":{"type":"object","type":"object"}}]}`
		}
		return ""
	})
}

// mute never answers.
func mute() { _, _ = bufio.NewReader(os.Stdin).ReadString(0) }

func garbage() {
	fmt.Println("npm warn deprecated: hello")
	mute()
}

// batch sends a thousand messages as one.
func batch() {
	fmt.Println("[" + strings.TrimSuffix(strings.Repeat(`{"jsonrpc":"2.0","method":"notifications/x"},`, 1000), ",") + "]")
	mute()
}

// endlessLine answers a call with a line that does not end.
func endlessLine() {
	converse(func(method string) string {
		switch method {
		case "initialize":
			return hello
		case "tools/list":
			return echoTool
		case "tools/call":
			fmt.Print(`{"jsonrpc":"2.0","id":99,"result":{"content":[{"type":"text","text":"`)
			part := strings.Repeat("x", 1<<20)
			for {
				if _, err := os.Stdout.WriteString(part); err != nil {
					os.Exit(1)
				}
			}
		}
		return ""
	})
}

// freeze stops this whole process.
func freeze() { _ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) }
