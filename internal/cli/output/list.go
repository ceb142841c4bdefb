package output

import (
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// List are objects: a List of Kubernetes as JSON, and as YAML one document for
// each, so that either can be applied.
type List struct{ Items []any }

// MarshalJSON implements json.Marshaler.
func (l List) MarshalJSON() ([]byte, error) {
	items := l.Items
	if items == nil {
		items = []any{}
	}
	return json.Marshal(struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Items      []any  `json:"items"`
	}{"v1", "List", items})
}

// Names implements Named as kubectl does: deployment.apps/web.
func (l List) Names() []string {
	var names []string
	for _, item := range l.Items {
		raw, err := json.Marshal(item)
		if err != nil {
			continue
		}
		var u unstructured.Unstructured
		if json.Unmarshal(raw, &u.Object) != nil {
			continue
		}
		kind := u.GroupVersionKind().GroupKind()
		kind.Kind = strings.ToLower(kind.Kind)
		names = append(names, kind.String()+"/"+u.GetName())
	}
	return names
}
