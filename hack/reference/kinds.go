package main

import (
	_ "embed" // kinds.yaml
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

//go:embed kinds.yaml
var kindsFile []byte

// others are reasons that are not constants of the API: reasons in conditions of objects, and in
// Events.
var others = map[string]bool{"JobsNotRecorded": true, "InvalidPrefix": true}

// byKind returns the tables of conditions by kind. It fails if a condition or reason is missing
// from all of them, or if one is not a constant.
func byKind(values map[string]string, comments string) (string, error) {
	var kinds []struct {
		Kind       string                `json:"kind"`
		Conditions []map[string]yamlList `json:"conditions"`
	}

	if err := yaml.UnmarshalStrict(kindsFile, &kinds); err != nil {
		return "", err
	}

	used := map[string]bool{"Ready": true, "Reconciling": true, "Stalled": true}
	var b strings.Builder
	b.WriteString("\n## Conditions by kind\n\nA condition is absent if none of the listed statuses applies. Every kind also has `Ready`, `Reconciling` and `Stalled`, usually with the reason of another condition. Cluster-scoped kinds have the same conditions as their namespaced twins. `PREFIX/TYPE` is mapped from an object of the package.\n")
	for _, kind := range kinds {
		fmt.Fprintf(&b, "\n### %s\n\n| Condition | Status | Reasons |\n|---|---|---|\n", kind.Kind)
		for _, condition := range kind.Conditions {
			types := strings.Split(condition["type"][0], ", ")
			for _, typ := range types {
				used[typ] = true
			}
			name := "`" + strings.Join(types, "`, `") + "`"
			for _, status := range []string{"True", "False", "Unknown", "any"} {
				var reasons []string
				for _, reason := range condition[status] {
					if text, ok := strings.CutPrefix(reason, "as "); ok {
						reasons = append(reasons, "as "+text)
						continue
					}
					used[reason] = true
					if !known(values, reason) && !others[reason] && !strings.Contains(comments, reason) {
						return "", fmt.Errorf("%s of %s is not a reason of the API", reason, kind.Kind)
					}
					reasons = append(reasons, "`"+reason+"`")
				}
				if len(reasons) > 0 {
					fmt.Fprintf(&b, "| %s | %s | %s |\n", name, status, strings.Join(reasons, ", "))
					name = ""
				}
			}
		}
	}

	for name, value := range values {
		if !used[value] && !others[value] {
			return "", fmt.Errorf("%s (%s) is in no table of hack/reference/kinds.yaml", value, name)
		}
	}

	return b.String(), nil
}

func known(values map[string]string, name string) bool {
	return slices.Contains(slices.Collect(maps.Values(values)), name)
}

// yamlList is a text or a list of such.
type yamlList []string

// UnmarshalJSON accepts both.
func (l *yamlList) UnmarshalJSON(data []byte) error {
	var one string
	if yaml.Unmarshal(data, &one) == nil {
		*l = yamlList{one}
		return nil
	}
	return yaml.Unmarshal(data, (*[]string)(l))
}
