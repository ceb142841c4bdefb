package kickstart

import (
	_ "embed" // kinds.yaml
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

//go:embed kinds.yaml
var kindsFile []byte

// knownKinds is the content of kinds.yaml.
type knownKinds struct {
	Phases []struct {
		Name  string
		Kinds []string
	}
	Probes []struct {
		Group, Kind string
		Conditions  []string
		CEL         map[string]any
	}
	ReadyAtOnce, ClusterScoped []string
}

var kinds = sync.OnceValue(func() (k knownKinds) {
	if err := yaml.UnmarshalStrict(kindsFile, &k); err != nil {
		panic(err) // it is embedded
	}
	return k
})

// listed reports whether a list has a kind as group/Kind, or its group.
func listed(list []string, kind schema.GroupKind) bool {
	return slices.Contains(list, kind.Group+"/"+kind.Kind) || slices.Contains(list, kind.Group)
}
