package environment

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/cluster/livestate"
)

// Look asks a cluster once what packages see of it. The Detector that it returns
// watches nothing. mapping is as in Options; list returns the objects of a
// selection.
func Look(
	ctx context.Context, version string, mapping func(gk schema.GroupKind, version string) (*meta.RESTMapping, error),
	list func(context.Context, livestate.Selection) ([]metav1.Object, error),
) (*Detector, error) {
	d := New(Options{Mapping: mapping, Changed: func() {}}, version)
	d.ctx = ctx
	for t := range topics {
		served, err := mapping(kinds[t], "")
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		selection := selections[t]
		if selection.Resource.Empty() {
			selection.Resource = served.Resource
		}
		all, err := list(ctx, selection)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", kinds[t], err)
		}
		w := &watch{resource: served.Resource, stop: func() {}, listed: true, found: map[string]any{}}
		for _, obj := range all {
			w.found[keyOf(obj)] = read[t](obj)
		}
		d.topics[t] = w
	}
	d.settled = true
	return d, nil
}
