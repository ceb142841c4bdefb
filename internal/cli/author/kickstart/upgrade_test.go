package kickstart_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lockstep.run/lockstep/internal/cli/author/kickstart"
	"lockstep.run/lockstep/internal/cli/author/threeway"
	"lockstep.run/lockstep/internal/loader"
)

// kickstarted makes a package and reads its record.
func kickstarted(t *testing.T, text string) (*kickstart.Result, *kickstart.Record) {
	t.Helper()
	opts := kickstart.Options{Name: "shop", Version: "1.0.0", Parameters: []kickstart.Parameter{kickstart.Replicas}}
	result := made(t, opts, text)
	files, err := result.Record(opts)
	if err != nil {
		t.Fatal(err)
	}
	record, err := kickstart.ReadRecord(files)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(opts, record.Options); diff != "" {
		t.Error(diff)
	}
	return result, record
}

// A new release is merged object by object and field by field; changes of the author
// stay.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	text := project(t, "monitoring")
	const (
		secret  = "deploy/alertmanager-main.secret.yaml.gotmpl"
		rule    = "resources/general.prometheusrule.yaml"
		account = "rbac/prometheus-operator.serviceaccount.yaml"
		service = "deploy/prometheus-k8s.service.yaml"
		adapter = "dependents/prometheus-adapter.deployment.yaml.gotmpl"
		another = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: new, namespace: monitoring}\n"
	)
	put := func(p, text string) func(loader.Files) { return func(f loader.Files) { f[p] = []byte(text) } }
	edit := func(p, from, to string) func(loader.Files) {
		return func(f loader.Files) {
			if !strings.Contains(string(f[p]), from) {
				t.Errorf("%s has no %q:\n%s", p, from, f[p])
			}
			f[p] = []byte(strings.Replace(string(f[p]), from, to, 1))
		}
	}
	move := func(from, to string) func(loader.Files) {
		return func(f loader.Files) { f[to] = f[from]; delete(f, from) }
	}
	both := func(edits ...func(loader.Files)) func(loader.Files) {
		return func(f loader.Files) {
			for _, e := range edits {
				e(f)
			}
		}
	}
	for name, tc := range map[string]struct {
		// edit is what the author did, release what the project did.
		edit    func(loader.Files)
		release []string
		// want are texts in files then; "" that there is no such file.
		want      map[string]string
		conflicts []kickstart.Conflict
	}{
		"nothing new": {edit(service, "port: 9090", "port: 9091"), nil, map[string]string{service: "port: 9091"}, nil},
		"both, other fields": {
			edit(service, "  ports:", "  type: NodePort # ours\n  ports:"), []string{"{name: web, port: 9090}", "{name: web, port: 9095}"},
			map[string]string{service: "type: NodePort # ours\n  ports:\n  - name: web\n    port: 9095"}, nil,
		},
		"both, the same field": {
			edit(service, "port: 9090", "port: 9091"), []string{"{name: web, port: 9090}", "{name: web, port: 9095}"}, nil,
			[]kickstart.Conflict{{File: service, Object: "Service monitoring/prometheus-k8s", Conflict: threeway.Conflict{Field: "spec.ports[name=web].port", Base: "9090", Ours: "9091", Theirs: "9095"}}},
		},
		"template": {
			edit(adapter, "replicas: {{ .config.deployments.prometheusAdapter.replicas | toJson }}", "replicas: {{ .config.adapters }}"), []string{"prometheus-adapter:v0.12.0", "prometheus-adapter:v0.13.0"},
			map[string]string{adapter: "prometheus-adapter:v0.13.0"}, nil,
		},
		"moved to another phase": {
			both(edit(service, "phase: deploy", "phase: dependents"), move(service, "mine/web.yaml")), []string{"{name: web, port: 9090}", "{name: web, port: 9095}"},
			map[string]string{"mine/web.yaml": "port: 9095", service: ""}, nil,
		},
		"two objects in a file": {
			both(func(f loader.Files) {
				f[account] = slices.Concat(f[account], []byte("---\n"), f[service])
				delete(f, service)
			}), []string{"{name: web, port: 9090}", "{name: web, port: 9095}"},
			map[string]string{account: "port: 9095", service: ""}, nil,
		},
		"new object":                   {nil, []string{"$", another}, map[string]string{"deploy/new.configmap.yaml": "name: new"}, nil},
		"new object at a file's place": {put("deploy/new.configmap.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other, namespace: monitoring}\n"), []string{"$", another}, map[string]string{"deploy/new.configmap.yaml": "name: other", "deploy/new.configmap-2.yaml": "name: new"}, nil},
		"removed object":               {nil, []string{"kind: PrometheusRule\nmetadata: {name: general", "kind: PrometheusRule\nmetadata: {name: other"}, map[string]string{rule: "", "resources/other.prometheusrule.yaml": "name: other"}, nil},
		"removed object, commented":    {edit(rule, "spec:", "# ours\nspec:"), []string{"kind: PrometheusRule\nmetadata: {name: general", "kind: PrometheusRule\nmetadata: {name: other"}, map[string]string{rule: ""}, nil},
		"removed object that was added to": {
			edit(rule, "Watchdog", "Dog"), []string{"kind: PrometheusRule\nmetadata: {name: general", "kind: PrometheusRule\nmetadata: {name: other"}, nil,
			[]kickstart.Conflict{{File: rule, Object: "PrometheusRule.monitoring.example.com monitoring/general", Conflict: threeway.Conflict{Base: "as it was made", Ours: "changed", Theirs: "nothing"}}},
		},
		"object that the author removed": {func(f loader.Files) { delete(f, service) }, []string{"{name: web, port: 9090}", "{name: web, port: 9095}"}, map[string]string{service: ""}, nil},
		"manifest": {
			both(edit("manifest.yaml", "  - name: deploy\n", "  - name: deploy\n  - name: mine\n"), edit("manifest.yaml", "shortDescription: Says in one line what it is good for.", "shortDescription: Monitors.")), []string{"$", "---\napiVersion: v1\nkind: LimitRange\nmetadata: {name: l, namespace: monitoring}\nspec: {limits: []}\n"},
			map[string]string{"manifest.yaml": "phases:\n  - name: crds\n  - name: namespaces\n  - name: policies\n  - name: rbac\n  - name: deploy\n  - name: mine\n"}, nil,
		},
		"value of a Secret": {
			edit(secret, "alertmanager.yaml: {{ .config.secrets.alertmanagerMain.alertmanagerYaml | toJson }}", "alertmanager.yaml: hush"), []string{"  alertmanager.yaml: |", "  other.yaml: |"}, nil,
			[]kickstart.Conflict{{File: secret, Object: "Secret monitoring/alertmanager-main", Conflict: threeway.Conflict{Base: "(hidden)", Ours: "(hidden)", Theirs: "(hidden)"}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, record := kickstarted(t, text)
			ours := maps.Clone(first.Files)
			if tc.edit != nil {
				tc.edit(ours)
			}
			next := text
			if len(tc.release) == 2 && tc.release[0] == "$" {
				next += tc.release[1]
			} else if len(tc.release) == 2 {
				next = strings.Replace(text, tc.release[0], tc.release[1], 1)
			}
			second, newer := kickstarted(t, next)
			up := record.Upgrade(ours, second, threeway.Neither)
			for i := range up.Conflicts {
				if strings.HasPrefix(up.Conflicts[i].Field, "line ") {
					up.Conflicts[i].Field = ""
				}
			}
			if diff := cmp.Diff(tc.conflicts, up.Conflicts); diff != "" {
				t.Error(diff)
			}
			for _, side := range []threeway.Side{threeway.Ours, threeway.Theirs} {
				decided := record.Upgrade(ours, second, side)
				again := newer.Upgrade(decided.Files, second, threeway.Neither)
				if len(decided.Conflicts)+len(again.Conflicts)+len(again.Added)+len(again.Changed)+len(again.Removed) > 0 {
					t.Errorf("%s: %+v, again %+v", side, decided.Conflicts, again)
				}
			}
			if tc.conflicts != nil {
				return
			}
			for p, want := range tc.want {
				if data, there := up.Files[p]; there != (want != "") || !strings.Contains(string(data), want) {
					t.Errorf("%s: %v, %s", p, there, data)
				}
			}
			if tc.release == nil && len(up.Added)+len(up.Changed)+len(up.Removed) > 0 {
				t.Errorf("got %+v", up)
			}
		})
	}
}

func TestRecordRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"options: [": "record.yaml", "optionz: {}": "unknown field", "options: {name: a, parameters: [bogus]}": `"bogus" cannot be made a parameter`,
	} {
		if _, err := kickstart.ReadRecord(loader.Files{"record.yaml": []byte(text)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v", text, err)
		}
	}
	if _, err := kickstart.ReadRecord(nil); err == nil || !strings.Contains(err.Error(), "it has no record.yaml") {
		t.Errorf("got %v", err)
	}
}
