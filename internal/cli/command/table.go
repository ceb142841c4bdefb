package command

import (
	"fmt"
	"io"

	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// PrintTable prints rows. The first is the head.
func PrintTable(w io.Writer, rows [][]string) {
	for _, line := range terminal.Table(rows) {
		fmt.Fprintln(w, line)
	}
}

// Where describes the packages that the flags of a list select.
func Where(cl *cluster.Cluster, ofCluster, everywhere bool) string {
	switch {
	case everywhere:
		return "at all"
	case ofCluster:
		return "in the cluster as a whole"
	}
	return "in namespace " + cl.Namespace
}

// ClusterWide fills columns of namespaces for cluster-scoped objects.
const ClusterWide = "(cluster)"

// MostNamed is the maximum number of objects that one line names.
const MostNamed = 10
