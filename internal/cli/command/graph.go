package command

import (
	"context"
	"fmt"
	"strings"

	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/graph"
	"lockstep.run/lockstep/internal/cli/progress"
)

// ConnectGraph connects to the cluster and reads all packages. It says on stderr which may not be read, and warns where no
// manager runs.
func (c *Command) ConnectGraph(ctx context.Context) (*cluster.Cluster, *graph.Graph, error) {
	cl, err := c.Connect()
	if err != nil {
		return nil, nil, err
	}
	all, hidden, err := cl.Packages(ctx)
	if err != nil {
		return nil, nil, err
	}
	if len(hidden) > 0 {
		fmt.Fprintf(c.Streams.ErrOut, "note: you may not read %s, so dependencies on them and of them may be missing\n", strings.Join(hidden, " and "))
	}
	c.WarnOfSilence(ctx, cl)
	return cl, graph.Of(all), nil
}

// TargetsOf joins the names of packages.
func TargetsOf(keys []graph.Key) string {
	names := make([]string, 0, min(len(keys), MostNamed))
	for _, k := range keys[:min(len(keys), MostNamed)] {
		names = append(names, k.String())
	}
	if more := len(keys) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// MostNamed is the number of packages that one line names.
const MostNamed = 10

// KeyOf is the key of a target.
func KeyOf(t progress.Target) graph.Key {
	return graph.Key{Kind: t.Kind(), Namespace: t.Namespace, Name: t.Name}
}
