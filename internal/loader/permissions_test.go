package loader

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/require"
)

const (
	asking  = plain + "  permissions: {serviceAccountName: web, rules: [{verbs: [get, list], apiGroups: [''], resources: [pods]}]}\n"
	account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: web, namespace: %, annotations: {package-operator.run/phase: first}}\n"
)

// rolesOf loads a package and returns the objects of its first phase, one per line.
func rolesOf(t *testing.T, files Files, opts Options) string {
	t.Helper()
	p, err := Load(context.Background(), files, opts)
	require.NoError(t, err)
	if len(p.Phases) == 0 || p.Phases[0].Name != "permissions" {
		return ""
	}

	var b strings.Builder
	for _, o := range p.Phases[0].Objects {
		if o.CollisionProtection != corev1alpha1.CollisionProtectionPrevent {
			t.Errorf("it can take over existing objects: %s", o.Object.Raw)
		}
		b.Write(o.Object.Raw)
		b.WriteString("\n")
	}

	return b.String()
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	const labels = `"labels":{"package-operator.run/instance":"my-shop","package-operator.run/package":"my-shop"}`
	const rules = `"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get","list"]}]`
	got := rolesOf(t, pkg("manifest.yaml", asking, "a.yaml", configMap("a", "first", "")), namespaced(func(o *Options) {
		o.CollisionProtection = corev1alpha1.CollisionProtectionNone
	}))

	want := `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{` + labels + `,"name":"my-shop-permissions","namespace":"team-a"},` + rules + `}
{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{` + labels + `,"name":"my-shop-permissions","namespace":"team-a"},` +
		`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"my-shop-permissions"},"subjects":[{"kind":"ServiceAccount","name":"web","namespace":"team-a"}]}
`
	require.Equal(t, want, got, "a Package")

	want = strings.NewReplacer(`"Role"`, `"ClusterRole"`, `"RoleBinding"`, `"ClusterRoleBinding"`, `,"namespace":"team-a"},"r`, `},"r`, `"namespace":"team-a"`, `"namespace":"shop"`).Replace(want)
	for name, files := range map[string]Files{
		"brought": pkg("manifest.yaml", asking, "a.yaml", strings.ReplaceAll(account, "%", "shop")),
		"default": pkg("manifest.yaml", asking, "a.yaml", strings.ReplaceAll(account, "namespace: %, ", "")),
		"absent":  pkg("manifest.yaml", asking),
	} {
		if got := rolesOf(t, files, namespaced(cluster, func(o *Options) {
			if name != "brought" {
				o.DefaultNamespace = "shop"
			}
		})); got != want {
			t.Errorf("a ClusterPackage, account %s:\n%s\nwant\n%s", name, got, want)
		}
	}

	require.Equal(t, "", rolesOf(t, pkg("manifest.yaml", plain, "a.yaml", configMap("a", "first", "")), namespaced()), "a package without permissions")
}

// A patch that matches every object does not match a role that the package did not bring, because
// it would widen the rights that were compared with the ceiling.
func TestPermissionsAreNotPatched(t *testing.T) {
	t.Parallel()
	before := rolesOf(t, pkg("manifest.yaml", asking, "a.yaml", configMap("a", "first", "")), namespaced())
	patched := func(o *Options) {
		o.Patches = []Patch{{Target: PatchTarget{Kind: "ConfigMap|Role"}, Patch: `[{"op": "add", "path": "/rules", "value": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}]`, Source: "spec.patches[0]"}}
	}

	if after := rolesOf(t, pkg("manifest.yaml", asking, "a.yaml", configMap("a", "first", "")), namespaced(patched)); after != before || before == "" {
		t.Errorf("%s\nbecame\n%s", before, after)
	}

	files := pkg("manifest.yaml", asking, "a.yaml", configMap("a", "first", ""))
	if got := lines(t, files, namespaced(func(o *Options) {
		o.Patches = []Patch{{Target: PatchTarget{Kind: "Role"}, Patch: `[{"op": "remove", "path": "/rules"}]`, Source: "spec.patches[0]"}}
	})); !strings.Contains(got, "spec.patches[0]") {
		t.Errorf("a patch of the Role alone: %s", got)
	}
}

func TestAggregatedRoles(t *testing.T) {
	t.Parallel()
	manifest := plain + "  permissions: {aggregateTo: [view, edit, admin]}\n"
	definition := func(name, group, plural string) string {
		return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: " + name + ", annotations: {package-operator.run/phase: first}}\n" +
			"spec: {group: " + group + ", scope: Namespaced, names: {kind: Shop, plural: " + plural + "}}\n"
	}
	got := rolesOf(t, pkg("manifest.yaml", manifest, "a.yaml", definition("shops.example.com", "example.com", "shops")), namespaced(cluster))
	for _, want := range []string{
		`"name":"my-shop-aggregate-to-view"},"rules":[{"apiGroups":["example.com"],"resources":["shops"],"verbs":["get","list","watch"]}]`,
		`"name":"my-shop-aggregate-to-edit"},"rules":[{"apiGroups":["example.com"],"resources":["shops"],"verbs":["get","list","watch","create","update","patch","delete","deletecollection"]}]`,
		`"name":"my-shop-aggregate-to-admin"},"rules":[{"apiGroups":["example.com"],"resources":["shops"],"verbs":["get","list","watch","create","update","patch","delete","deletecollection"]}]`,
		`"rbac.authorization.k8s.io/aggregate-to-edit":"true"`,
	} {
		require.Contains(t, got, want)
	}

	const group = `a.yaml idx 0 line 3: apiextensions.k8s.io/v1 CustomResourceDefinition %s: spec.group: "%s" is a group of Kubernetes or of the engine, on which ` +
		"spec.permissions.aggregateTo of the manifest gives users no rights. Define kinds of a group of your own, or leave spec.permissions.aggregateTo of the manifest out."

	const none = "spec.permissions.aggregateTo: the package brings no CustomResourceDefinition whose kind users could get rights on. " +
		"Bring the CustomResourceDefinition, with metadata.name PLURAL.GROUP, or leave it out."
	of := func(group, plural string) string { return definition(plural+"."+group, group, plural) }
	refused := func(name, of string) string { return fmt.Sprintf(group, name, of) }
	for text, want := range map[string]string{
		definition("secrets.", "''", "secrets"):                 refused("secrets.", ""),
		of("rbac.authorization.k8s.io", "roles"):                refused("roles.rbac.authorization.k8s.io", "rbac.authorization.k8s.io"),
		of("metrics.k8s.io", "pods"):                            refused("pods.metrics.k8s.io", "metrics.k8s.io"),
		of("k8s.io", "shops"):                                   refused("shops.k8s.io", "k8s.io"),
		of("dns.kubernetes.io", "shops"):                        refused("shops.dns.kubernetes.io", "dns.kubernetes.io"),
		of("package-operator.run", "packages"):                  refused("packages.package-operator.run", "package-operator.run"),
		of("apps", "deployments"):                               refused("deployments.apps", "apps"),
		of("autoscaling", "shops"):                              refused("shops.autoscaling", "autoscaling"),
		of("batch", "jobs"):                                     refused("jobs.batch", "batch"),
		of("policy", "shops"):                                   refused("shops.policy", "policy"),
		definition("'*.example.com'", "example.com", "'*'"):     none,
		definition("shops.example.com", "example.org", "shops"): none,
		strings.ReplaceAll(account, "%", "shop"):                none,
	} {
		require.Contains(t, lines(t, pkg("manifest.yaml", manifest, "a.yaml", text), namespaced(cluster)), want, text)
	}

	files := pkg("manifest.yaml", manifest, "a.yaml", of("example.com", "roles"))
	if got := lines(t, files, namespaced(cluster, func(o *Options) {
		o.Patches = []Patch{{
			Target: PatchTarget{Kind: "CustomResourceDefinition"}, Source: "spec.patches[0]",
			Patch: `[{"op": "replace", "path": "/spec/group", "value": "rbac.authorization.k8s.io"}, {"op": "replace", "path": "/metadata/name", "value": "roles.rbac.authorization.k8s.io"}]`,
		}}
	})); got == "" {
		t.Error("a patch gives users rights on roles")
	}

	require.Contains(t, rolesOf(t, pkg("manifest.yaml", manifest, "a.yaml", of("notk8s.io", "shops")), namespaced(cluster)), "notk8s.io", "a group of an author")
}

func TestPermissionProblems(t *testing.T) {
	t.Parallel()
	of := func(permissions string) Files {
		return pkg("manifest.yaml", plain+"  permissions: "+permissions+"\n")
	}
	const rule = "rules: [{verbs: [get], apiGroups: [''], resources: [pods]}]"
	for name, tc := range map[string]struct {
		files Files
		opts  Options
		want  string
	}{
		"no account":             {of("{" + rule + "}"), namespaced(), "spec.permissions.serviceAccountName: Required value. Name the ServiceAccount of the workload."},
		"an account, no rules":   {of("{serviceAccountName: web}"), namespaced(), "spec.permissions.serviceAccountName: there are no rules to grant to it. List the rules, or remove it."},
		"of another namespace":   {of("{serviceAccountName: 'kube-system:admin', " + rule + "}"), namespaced(), `spec.permissions.serviceAccountName: "kube-system:admin" is not a valid ServiceAccount name`},
		"of a path":              {of("{serviceAccountName: ../admin, " + rule + "}"), namespaced(), `"../admin" is not a valid ServiceAccount name`},
		"where is it":            {of("{serviceAccountName: web, " + rule + "}"), namespaced(cluster), "the namespace of the ServiceAccount web is unknown: the package does not bring it, and a ClusterPackage has no namespace of its own. Bring one ServiceAccount of that name in the package, or set spec.defaultNamespace of the ClusterPackage."},
		"in two namespaces":      {pkg("manifest.yaml", asking, "a.yaml", strings.ReplaceAll(account, "%", "a"), "b.yaml", strings.ReplaceAll(account, "%", "b")), namespaced(cluster), "the package brings ServiceAccounts web in several namespaces, as in a and b"},
		"paths in a namespace":   {of("{serviceAccountName: web, rules: [{verbs: [get], nonResourceURLs: [/metrics]}]}"), namespaced(), "spec.permissions.rules[0].nonResourceURLs: a Package is granted rights in its own namespace only, and paths are in none. Install the package as a ClusterPackage (--cluster), or leave the rule out."},
		"users of a namespace":   {of("{aggregateTo: [view]}"), namespaced(), "Object outside the scope of the package in manifest.yaml idx 0 line 7: spec.permissions.aggregateTo: a ClusterRole is cluster-scoped, and a Package may only bring objects of its own namespace. Install the package as a ClusterPackage (--cluster), or leave it out."},
		"a role twice":           {of("{aggregateTo: [view, view]}"), namespaced(cluster), `spec.permissions.aggregateTo[1]: Duplicate value: "view"`},
		"both kinds of rules":    {of("{serviceAccountName: web, rules: [{verbs: [get], resources: [pods], apiGroups: [''], nonResourceURLs: [/a]}]}"), namespaced(), "spec.permissions.rules[0]: exactly one of resources and nonResourceURLs is needed"},
		"an empty name":          {of("{serviceAccountName: web, rules: [{verbs: [get], apiGroups: [''], resources: [secrets], resourceNames: ['']}]}"), namespaced(), "spec.permissions.rules[0].resourceNames[0]: Required value"},
		"no group":               {of("{serviceAccountName: web, rules: [{verbs: [get], resources: [secrets]}]}"), namespaced(), `spec.permissions.rules[0].apiGroups: Required value. Write "" for the core group.`},
		"many rules":             {of("{serviceAccountName: web, rules: [" + strings.Repeat("{verbs: [get], apiGroups: [''], resources: [pods]}, ", 101) + "]}"), namespaced(), "Limit exceeded in manifest.yaml idx 0 line 7: spec.permissions.rules: 101 rules; the limit is 100"},
		"many rights":            {of("{serviceAccountName: web, rules: [{verbs: [get], apiGroups: [''], resources: [" + strings.Repeat("a, ", 2001) + "]}]}"), namespaced(), "spec.permissions.rules: 2001 single rights; the limit is 2000"},
		"its own role":           {pkg("manifest.yaml", asking, "a.yaml", "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: my-shop-permissions, annotations: {package-operator.run/phase: first}}\n"), namespaced(), "it is in a.yaml idx 0 line 3 as well"},
		"a phase with that name": {pkg("manifest.yaml", strings.Replace(asking, "name: second", "name: permissions", 1)), namespaced(), `spec.phases[1].name: the phase of the roles of spec.permissions has the name "permissions". Choose another name.`},
	} {
		require.Contains(t, lines(t, tc.files, tc.opts), tc.want, name)
	}
}
