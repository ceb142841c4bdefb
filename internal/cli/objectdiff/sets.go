package objectdiff

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"lockstep.run/lockstep/internal/objects"
)

// Object is one object of a set.
type Object struct {
	Key objects.Key
	// Phase that the object belongs to.
	Phase string
	// Value of the object as JSON.
	Value map[string]any
}

// KeyOf returns the key of an object; namespace is the default.
func KeyOf(value map[string]any, namespace string) objects.Key {
	u := unstructured.Unstructured{Object: value}
	return objects.Key{
		Group: u.GroupVersionKind().Group, Kind: u.GetKind(), Namespace: cmp.Or(u.GetNamespace(), namespace), Name: u.GetName(),
	}
}

// ID identifies an object in a report. It is empty for the package as a whole.
type ID struct {
	Group     string `json:"group,omitempty"`
	Version   string `json:"version,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// IDOf returns the ID of a key, without a version.
func IDOf(key objects.Key) ID {
	return ID{Group: key.Group, Kind: key.Kind, Namespace: key.Namespace, Name: key.Name}
}

// Key is the ID without the version.
func (i ID) Key() objects.Key {
	return objects.Key{Group: i.Group, Kind: i.Kind, Namespace: i.Namespace, Name: i.Name}
}

// Object returns a text such as "Deployment shop/web".
func (i ID) Object() string { return Short(i.Key()) }

// Short returns a text such as "Deployment shop/web", without the group.
func Short(key objects.Key) string {
	key.Group = ""
	return key.String()
}

// Kind of a difference between two sets.
type Kind string

// The change of an object.
const (
	Added   Kind = "Added"
	Removed Kind = "Removed"
	// Changed means that fields differ. The phase can differ as well.
	Changed Kind = "Changed"
	// Moved means that only the phase differs.
	Moved Kind = "Moved"
)

// Sets returns the objects that differ between two sets: objects of the later set in its order,
// followed by the removed ones in the order of the earlier set.
func Sets(before, after []Object) []Difference {
	was := map[objects.Key]Object{}
	for _, o := range before {
		was[o.Key] = o
	}

	out := []Difference{}
	stays := map[objects.Key]bool{}
	for _, o := range after {
		old, had := was[o.Key]
		// The first object of a key wins.
		if stays[o.Key] {
			continue // duplicate
		}
		stays[o.Key] = true
		if !had {
			out = append(out, differenceOf(o, Added))
			continue
		}

		d := differenceOf(o, "")
		d.Fields = Fields(old.Value, o.Value, nil)
		if old.Phase != o.Phase {
			d.PhaseBefore, d.Action = old.Phase, Moved
		}
		if len(d.Fields) > 0 {
			d.Action = Changed
		}

		if d.Action != "" {
			out = append(out, d)
		}
	}

	for _, o := range before {
		if !stays[o.Key] {
			stays[o.Key] = true
			out = append(out, differenceOf(o, Removed))
		}
	}

	return out
}

// differenceOf returns a difference about an object, without its fields.
func differenceOf(o Object, action Kind) Difference {
	return Difference{Action: action, ID: IDOf(o.Key), Phase: o.Phase}
}

// Comparison is the difference between two revisions. Its JSON fields are stable.
type Comparison struct {
	From    int64        `json:"from"`
	To      int64        `json:"to"`
	Phases  *OrderChange `json:"phases,omitempty"`
	Probes  bool         `json:"probesDiffer,omitempty"`
	Objects []Difference `json:"objects"`
}

// OrderChange is a change of the list of phases.
type OrderChange struct {
	Before []string `json:"before"`
	After  []string `json:"after"`
}

// Difference is an object that differs between the revisions.
type Difference struct {
	Action Kind `json:"action"`
	ID

	// Phase is the phase in the later set, or in the earlier one if the object is removed.
	// PhaseBefore is set if the earlier phase differs.
	Phase       string `json:"phase"`
	PhaseBefore string `json:"phaseBefore,omitempty"`

	// Fields that differ, if the object is Changed.
	Fields []Change `json:"fields,omitempty"`
}

// Object returns the object in words, such as Deployment.apps shop/web.
func (d *Difference) Object() string {
	return d.Key().GroupKind().String() + " " + d.Key().NamespacedName()
}

// Phases returns the phase of the object, along with the earlier one.
func (d *Difference) Phases() string {
	if d.PhaseBefore != "" {
		return d.Phase + ", before " + d.PhaseBefore
	}
	return d.Phase
}
