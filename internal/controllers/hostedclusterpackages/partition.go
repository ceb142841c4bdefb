package hostedclusterpackages

import (
	"cmp"
	"maps"
	"slices"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// others is the group of the label values that a static order does not list.
const others = "*"

// groups are the groups of hosted clusters in their order.
type groups struct {
	// names are label values; hosted clusters without the label have an empty one. nil without a
	// partition.
	names []string
	// static is the listed order. If it does not contain others, they come last.
	static []string
	key    string
}

// groupsOf returns the groups of hosted clusters with some labels.
func groupsOf(partition *corev1alpha1.HostedClusterPackagePartition, clusters []map[string]string) groups {
	if partition == nil {
		return groups{}
	}

	g := groups{key: partition.LabelKey}
	if order := partition.Order; order != nil && len(order.Static) > 0 {
		g.static = slices.Clone(order.Static)
		if !slices.Contains(g.static, others) {
			g.static = append(g.static, others)
		}
	}

	found := map[string]bool{}
	for _, labels := range clusters {
		found[g.nameOf(labels)] = true
	}

	g.names = slices.SortedFunc(maps.Keys(found), g.compare)
	return g
}

// nameOf returns the name of the group of a hosted cluster.
func (g groups) nameOf(labels map[string]string) string {
	value := labels[g.key]
	if g.static != nil && !slices.Contains(g.static, value) {
		return others
	}
	return value
}

// numberOf returns the place of the group of a hosted cluster in the order.
func (g groups) numberOf(labels map[string]string) int {
	return max(0, slices.Index(g.names, g.nameOf(labels)))
}

// compare orders names: as listed, or ascending with hosted clusters without the label at the end.
func (g groups) compare(a, b string) int {
	switch {
	case g.static != nil:
		return slices.Index(g.static, a) - slices.Index(g.static, b)
	case a == "" || b == "":
		return len(b) - len(a)
	}
	return cmp.Compare(a, b)
}
