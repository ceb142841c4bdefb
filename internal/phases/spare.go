package phases

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/objects"
)

var (
	namespaceKind  = schema.GroupKind{Kind: "Namespace"}
	definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

	// essentialNamespaces are those that Kubernetes itself needs. The API server refuses to delete most of them.
	essentialNamespaces = []string{"default", "kube-system", "kube-public", "kube-node-lease"}
)

// spared returns why an object that is to be removed is released instead: its deletion would
// destroy what others, or a revision that stays, have in it. It is empty for other objects.
func (p *planner) spared(d *objects.Desired) string {
	live := p.Live[d.Key].Object
	var within func(objects.Key) bool
	switch d.Key.GroupKind() {
	case namespaceKind:
		switch {
		case slices.Contains(essentialNamespaces, d.Key.Name):
			return "Kubernetes itself needs it"
		case live != nil && live.Adopted:
			return "it existed before the package adopted it"
		}
		within = func(key objects.Key) bool { return key.Namespace == d.Key.Name }
	case definitionKind:
		within = instancesOf(d)
	default:
		return ""
	}
	for _, r := range slices.Backward(p.Revisions) {
		if p.Teardown || p.superseded(r) {
			continue
		}
		if n := r.count(within); n > 0 {
			return fmt.Sprintf("revision %d has objects in it (%d)", r.Number, n)
		}
	}
	return ""
}

// instancesOf selects the instances of a definition. If its content is not known, these are all objects of its group.
func instancesOf(definition *objects.Desired) func(objects.Key) bool {
	var content struct {
		Spec struct {
			Group string `json:"group"`
			Names struct {
				Kind string `json:"kind"`
			} `json:"names"`
		} `json:"spec"`
	}
	if json.Unmarshal(definition.Raw, &content) == nil && content.Spec.Names.Kind != "" {
		kind := schema.GroupKind{Group: content.Spec.Group, Kind: content.Spec.Names.Kind}
		return func(key objects.Key) bool { return key.GroupKind() == kind }
	}
	_, group, _ := strings.Cut(definition.Key.Name, ".")
	return func(key objects.Key) bool { return key.Group == group }
}

// count counts the objects of the revision that are selected, also those that agents write.
func (r *Revision) count(selected func(objects.Key) bool) int {
	n := 0
	for i := range r.Phases {
		for _, d := range slices.Concat(r.Phases[i].Objects, r.Phases[i].Delegated) {
			if selected(d.Key) {
				n++
			}
		}
	}
	return n
}
