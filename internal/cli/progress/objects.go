package progress

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/objects"
)

// name shows a key without the namespace that goes without saying.
func (s *State) name(k objects.Key) string {
	if k.Namespace == s.Target.Namespace {
		k.Namespace = ""
	}
	return terminal.Line(k.Kind + " " + k.NamespacedName())
}

// fillObjects lists the objects of each phase. blocked has all that block where
// complete is set, else some of them.
func (s *State) fillObjects(set corev1alpha1.GenericObjectSet, slices map[string][]corev1alpha1.ObjectSetObject, blocked map[objects.Key]string, complete bool) {
	written := map[objects.Key]bool{}
	for _, c := range set.ObjectSetStatus().ControllerOf {
		written[objects.Key{Group: c.Group, Kind: c.Kind, Namespace: c.Namespace, Name: c.Name}] = true
	}
	for i, ph := range set.ObjectSetSpec().Phases {
		if i >= len(s.Phases) || s.Phases[i].Name != terminal.Line(ph.Name) {
			return
		}
		all := ph.Objects
		for _, name := range ph.Slices {
			all = append(all[:len(all):len(all)], slices[name]...)
		}
		for _, raw := range all {
			key, ok := s.key(raw.Object.Raw)
			if !ok {
				continue
			}
			obj := Object{Name: s.name(key), Group: terminal.Line(key.Group), Phase: s.Phases[i].Name}
			message, isBlocked := blocked[key]
			switch {
			case s.Phases[i].State == corev1alpha1.PhaseStateReady:
				obj.State = ObjectReady
			case isBlocked:
				obj.State, obj.Message = ObjectBlocked, message
			case written[key] && complete:
				obj.State = ObjectReady
			case written[key]:
				obj.State = ObjectWritten
			}
			s.Phases[i].Objects = append(s.Phases[i].Objects, obj)
		}
	}
}

// key reads what names an object. The namespace of a namespaced package is the
// default of its objects.
func (s *State) key(raw []byte) (objects.Key, bool) {
	var obj struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &obj); err != nil {
		return objects.Key{}, false
	}
	key := objects.Key{
		Group: schema.FromAPIVersionAndKind(obj.APIVersion, obj.Kind).Group, Kind: obj.Kind,
		Namespace: obj.Metadata.Namespace, Name: obj.Metadata.Name,
	}
	if key.Namespace == "" {
		key.Namespace = s.Target.Namespace
	}
	return key, true
}
