package environment

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/cluster/livestate"
)

// Look reads once everything that packages see of a cluster, into a Detector that does not watch.
// mapping is the same as in Options; list returns the objects of a selection.
func Look(
	ctx context.Context, version string, mapping func(gk schema.GroupKind, version string) (*meta.RESTMapping, error),
	list func(context.Context, livestate.Selection) ([]metav1.Object, error),
) (*Detector, error) {
	d := New(Options{Mapping: mapping, Changed: func() {}}, version)
	for t := range topics {
		served, err := mapping(table[t].kind, "")
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all, err := list(ctx, t.selection(served.Resource))
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", table[t].kind, err)
		}
		d.watches[t] = &watch{}
		d.watches[t].list(t, all)
	}

	d.complete = true
	d.seen = d.state()
	return d, nil
}
