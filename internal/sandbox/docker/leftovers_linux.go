package docker

import (
	"context"
	"slices"
	"strings"

	"github.com/moby/moby/client"

	"github.com/bawn-dev/bawn/internal/sandbox/maker"
)

// sweep removes the directories and containers of makers that ended without doing
// so. It is done beside a session's start and says nothing: what can't be removed
// now is tried again next time.
func sweep(e *engine, runtime string, me maker.Maker) {
	ctx, cancel := context.WithTimeout(context.Background(), e.life)
	defer cancel()
	_ = sweepPlaces(runtime)
	ours := make(client.Filters).Add("label", maker.LabelMaker)
	list, err := e.client.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: ours})
	if err != nil {
		return
	}
	for _, c := range list.Items {
		if named(c.Names) && left(c.Labels, me) {
			_ = e.remove(ctx, c.ID)
		}
	}
}

// named reports whether a container has a name of Bawn's. Labels come from its
// image, too, and that may be anybody's.
func named(names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "/bawn-") })
}

// left reports whether labels are this package's, and of a maker that has
// certainly ended. One of another PID namespace can't be judged; what guests have
// made is the broker's.
func left(labels map[string]string, me maker.Maker) bool {
	if labels[maker.LabelSession] == "" || !slices.Contains([]string{roleSession, roleNetwork, roleProbe}, labels[maker.LabelRole]) {
		return false
	}
	if me.Space == "" || labels[maker.LabelSpace] != me.Space {
		return false
	}
	m, err := maker.Parse(labels[maker.LabelMaker])
	return err == nil && m.Gone()
}
