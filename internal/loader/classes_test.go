package loader

import (
	"context"
	"strings"
	"testing"
)

// TestClasses checks that no rule about places applies to objects that the agent of a class writes,
// because its cluster is unknown. The class default means this cluster. An ObjectSetPhase gets no
// value of a Secret.
func TestClasses(t *testing.T) {
	t.Parallel()
	role := "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: a, annotations: {package-operator.run/phase: first}}\n"
	for name, test := range map[string]struct {
		class string
		files []string
		opts  Options
		want  string
	}{
		"cluster-scoped elsewhere":     {"far", []string{"a.yaml", role}, namespaced(), ""},
		"cluster-scoped here":          {"default", []string{"a.yaml", role}, namespaced(), "ClusterRole is cluster-scoped"},
		"another namespace elsewhere":  {"far", []string{"a.yaml", configMap("a", "first", "  namespace: b\n")}, namespaced(), ""},
		"the same elsewhere and here":  {"far", []string{"a.yaml", configMap("a", "first", ""), "b.yaml", configMap("a", "second", "")}, namespaced(), ""},
		"the same in default and here": {"default", []string{"a.yaml", configMap("a", "first", ""), "b.yaml", configMap("a", "second", "")}, namespaced(), "Duplicate"},
		"twice elsewhere":              {"far", []string{"a.yaml", configMap("a", "first", ""), "b.yaml", configMap("a", "first", "")}, namespaced(), "Duplicate"},
		"a value of a Secret": {"default", []string{"a.yaml.gotmpl", "apiVersion: v1\nkind: Secret\nmetadata: {name: a, annotations: {package-operator.run/phase: first}}\nstringData: {p: '{{.config.password}}'}\n"},
			withSecret(), `phase "first" has the class "default", and its ObjectSetPhase would hold a value that came from a Secret`},
		"no value of a Secret": {"far", []string{"a.yaml.gotmpl", configMap("a", "first", "")}, withSecret(), ""},
	} {
		manifest := strings.Replace(plain, "{name: first}", "{name: first, class: "+test.class+"}", 1) + anyConfig
		pkg, err := Load(context.Background(), pkg(append([]string{"manifest.yaml", manifest}, test.files...)...), test.opts)
		switch {
		case err == nil && test.want != "", err != nil && (test.want == "" || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: %v, want %q", name, err, test.want)
		case err == nil && pkg.Phases[0].Class != test.class:
			t.Errorf("%s: the phase is %+v", name, pkg.Phases[0])
		}
	}
}
