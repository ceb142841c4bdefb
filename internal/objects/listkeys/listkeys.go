package listkeys

import (
	"encoding/json"
	"fmt"
	"strings"
)

// table has the fields that identify elements in lists of Kubernetes, of manifests, and of most
// custom resources. The first entry that fits is used, with as few of its fields as are unique. All
// fields but the first can be absent.
var table = [][]string{
	{"name"}, {"selector"}, {"key", "operator"}, {"type"}, {"containerPort", "protocol"}, {"port", "protocol"}, {"mountPath"}, {"devicePath"},
	{"topologyKey", "whenUnsatisfiable"}, {"ip"}, {"host"}, {"path"}, {"uid"}, {"rule"},
}

// defaults are the values of keys that a template can leave out.
var defaults = map[string]any{"protocol": "TCP"}

// Default returns the value that the API server gives an omitted key; nil if there is none.
func Default(key string) any { return defaults[key] }

// Identify returns a name for each element of each list that is unique in its list, such as
// containerPort=53,protocol=UDP. schema has the keys of the list's schema, or is nil if they are
// unknown. ok is false if the elements cannot be identified.
func Identify(schema []string, lists ...[]any) (names [][]string, ok bool) {
	candidates := table
	if len(schema) > 0 {
		candidates = append([][]string{table[0], schema}, table[1:]...)
	}
	for _, fields := range candidates {
		for n := range fields {
			if names, ok = identify(fields[:n+1], lists); ok {
				return names, true
			}
		}
	}
	return nil, false
}

// Names returns the name of each element, or an empty string for an element without a name. It is
// the fallback if Identify fails; names need not be unique.
func Names(list []any) []string {
	names := make([]string, len(list))
	for i, element := range list {
		names[i], _ = nameOf(table[0], element)
	}
	return names
}

func identify(fields []string, lists [][]any) (all [][]string, ok bool) {
	some := false
	for _, list := range lists {
		names, seen := make([]string, len(list)), make(map[string]bool, len(list))
		for i, element := range list {
			name, has := nameOf(fields, element)
			if !has || seen[name] {
				return nil, false
			}
			names[i], seen[name], some = name, true, true
		}
		all = append(all, names)
	}

	return all, some
}

func nameOf(fields []string, element any) (string, bool) {
	of, _ := element.(map[string]any)
	var parts []string
	for i, field := range fields {
		value := of[field]
		switch {
		case value != nil:
		case i == 0:
			return "", false
		default:
			if value = defaults[field]; value == nil {
				continue
			}
		}
		parts = append(parts, field+"="+text(value))
	}

	return strings.Join(parts, ","), true
}

func text(value any) string {
	switch value.(type) {
	case map[string]any, []any:
		encoded, _ := json.Marshal(value) // decoded JSON can always be encoded
		return string(encoded)
	}
	return fmt.Sprint(value)
}
