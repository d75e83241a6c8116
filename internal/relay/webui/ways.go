package webui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/nicholas-fedor/shoutrrr/pkg/router"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"

	"github.com/bawn-dev/bawn"
)

// services are those that notices can be sent through: of shoutrrr's all that
// reach a human.
var services = []string{
	"bark", "discord", "generic", "gotify", "googlechat", "ifttt", "join", "lark", "matrix", "mattermost", "notifiarr", "ntfy", "opsgenie", "pagerduty",
	"pushbullet", "pushover", "rocketchat", "signal", "slack", "smtp", "teams", "telegram", "wecom", "zulip",
}

// A Way is one line of the file of notices: the address of a service, which is
// a secret, or the name of the vault's secret that holds it.
type Way struct {
	Address bawn.Secret
	Secret  string // "" where Address is set
	Line    int
}

// maxWays is how many ways a file may name.
const maxWays = 20

// ParseWays reads a file of notices: a line is an address ("ntfy://…") or
// "secret:NAME"; blank lines and those that begin with # are left out. Errors
// name the line without its contents.
func ParseWays(text string) ([]Way, error) {
	if !utf8.ValidString(text) {
		return nil, errors.New("the file of notices is no UTF-8")
	}
	var ways []Way
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		w, err := parseWay(line)
		if err != nil {
			return nil, fmt.Errorf("line %d of the notices: %w", number, err)
		}
		w.Line = number
		if ways = append(ways, w); len(ways) > maxWays {
			return nil, fmt.Errorf("more than %d ways for notices", maxWays)
		}
	}
	return ways, nil
}

func parseWay(line string) (Way, error) {
	if name, ok := strings.CutPrefix(line, "secret:"); ok {
		if name == "" || plainName(name, len(name)) != name {
			return Way{}, errors.New("want secret:NAME with the name of a secret in the vault")
		}
		return Way{Secret: name}, nil
	}
	return Way{Address: bawn.NewSecret([]byte(line))}, checkAddress(line)
}

// checkAddress wants a service that is known, without a control character.
func checkAddress(address string) error {
	scheme, _, ok := strings.Cut(address, "://")
	service, _, _ := strings.Cut(scheme, "+") // generic+https
	if !ok || !slices.Contains(services, service) {
		return fmt.Errorf("want an address such as ntfy://…, of one of %q, or secret:NAME", services)
	}
	if strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return errors.New("the address has a blank or control character")
	}
	return nil
}

// Open makes notices of ways; secret reads one from the vault. Errors hold no
// part of an address.
func Open(ctx context.Context, ways []Way, secret func(ctx context.Context, name string) (bawn.Secret, error)) ([]Notice, error) {
	var out []Notice
	for _, w := range ways {
		address := w.Address
		if w.Secret != "" {
			var err error
			if address, err = secret(ctx, w.Secret); err != nil {
				return nil, fmt.Errorf("line %d of the notices: secret %q: %w", w.Line, w.Secret, err)
			}
		}
		n, err := notice(strings.TrimSpace(string(address.Reveal())))
		if err != nil {
			return nil, fmt.Errorf("line %d of the notices: %w", w.Line, err)
		}
		out = append(out, n)
	}
	return out, nil
}

// notice makes one. What shoutrrr says may hold parts of the address, so it is
// not passed on.
func notice(address string) (Notice, error) {
	if err := checkAddress(address); err != nil {
		return Notice{}, err
	}
	scheme, _, _ := strings.Cut(address, "://")
	service, _, _ := strings.Cut(scheme, "+")
	to, err := router.New(nil, address)
	if err != nil {
		return Notice{}, fmt.Errorf("the address of the service %s is not complete", service)
	}
	return Notice{Name: service, Send: func(text string) error {
		return errors.Join(to.Send(text, &types.Params{"title": "Bawn"})...)
	}}, nil
}
