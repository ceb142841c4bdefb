package engine

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"lockstep.run/lockstep/test/require"
)

func TestDataOf(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		live   map[string]any
		want   map[string]any
	}{
		"ConfigMap": {
			reason: "no other manager adds to the data of one",
			live:   map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"labels": map[string]any{"a": "b"}}, "data": map[string]any{"a": "1"}, "immutable": true},
			want:   map[string]any{"data": map[string]any{"a": "1"}},
		},
		"Secret": {
			reason: "nor to one's own",
			live:   map[string]any{"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"a": "MQ=="}, "type": "Opaque"},
			want:   map[string]any{"data": map[string]any{"a": "MQ=="}},
		},
		"claim": {
			reason: "the API server adds fields that cannot be taken away",
			live:   map[string]any{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": map[string]any{"storageClassName": "standard"}},
			want:   map[string]any{},
		},
		"custom resource": {
			reason: "its schema can have defaults",
			live:   map[string]any{"apiVersion": "shop.example/v1", "kind": "ConfigMap", "data": map[string]any{"a": "1"}},
			want:   map[string]any{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.want, dataOf(&unstructured.Unstructured{Object: tc.live}), tc.reason)
		})
	}
}
