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

	// essentialNamespaces are namespaces that Kubernetes itself needs. The API server refuses to
	// delete most of them.
	essentialNamespaces = []string{"default", "kube-system", "kube-public", "kube-node-lease"}
)

// spared returns why an object must not be deleted, because its deletion would destroy objects of
// others, or of a revision that stays. Such an object is released instead. It returns an empty
// string for other objects.
func (p *planner) spared(d *objects.Desired) string {
	live := p.Live[d.Key].Object
	var within func(objects.Key) bool
	what := "object in"
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
		within, what = instancesOf(d), "instance of"
	default:
		return ""
	}

	if p.Controllers.Replaced {
		return "a later revision took objects over, and may have some that depend on it"
	}

	for _, r := range slices.Backward(p.Revisions) {
		if p.Teardown || p.superseded(r) {
			continue
		}
		if n := r.count(within); n > 0 {
			return fmt.Sprintf("revision %d still has %s", r.Number, inside(n, what))
		}
	}

	return ""
}

// inside describes the number of objects in a Namespace, or of instances of a definition.
func inside(n int, what string) string {
	noun, preposition, _ := strings.Cut(what, " ")
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s %s it", n, noun, preposition)
}

// instancesOf selects the instances of a definition. If its content is unknown, it selects all
// objects of its group.
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

// count counts the selected objects of the revision, including those that agents write.
func (r *Revision) count(selected func(objects.Key) bool) int {
	n := 0
	for _, d := range r.AllObjects() {
		if selected(d.Key) {
			n++
		}
	}

	return n
}
