package handover_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/cli/handover"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
)

func zipped(data []byte) string {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(data)
	_ = z.Close()
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

// record is a release as Helm stores it.
func record(manifest string, more map[string]any) []byte {
	r := map[string]any{"name": "web", "namespace": "store", "version": 3, "info": map[string]any{"status": "deployed"}, "manifest": manifest, "config": map[string]any{"password": "secret"}}
	for key, value := range more {
		r[key] = value
	}
	data, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	return data
}

func TestReadHelmRelease(t *testing.T) {
	t.Parallel()
	const manifest = `---
# Source: web/templates/service.yaml
apiVersion: v1
kind: Service
metadata: {name: web}
---
# nothing here
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: web-reader, namespace: kube-system}
metadata: {name: web-reader, namespace: kube-system} # charts repeat keys, which Helm accepts
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: b}}
`
	hook := map[string]any{"hooks": []any{map[string]any{"name": "init", "manifest": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: init}\n"}}}
	const crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: carts.example.com}\n"
	definitions := map[string]any{"chart": map[string]any{"files": []any{
		map[string]any{"name": "crds/carts.yaml", "data": []byte(crd)}, map[string]any{"name": "README.md", "data": []byte("{{ no YAML }}: [")},
	}}}
	const one = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"
	service := handover.Recorded{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Service"}, Namespace: "store", Name: "web"}
	incidental := func(group, version, kind, name string) handover.Recorded {
		return handover.Recorded{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: version, Kind: kind}, Namespace: "store", Name: name, Incidental: true}
	}
	for _, tc := range []struct {
		reason string
		data   string
		want   []handover.Recorded
		err    string
	}{
		{reason: "several namespaces and lists", data: zipped(record(manifest, nil)), want: []handover.Recorded{
			service,
			{GroupVersionKind: schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"}, Namespace: "kube-system", Name: "web-reader"},
			{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: "store", Name: "a"},
			{GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Namespace: "store", Name: "b"},
		}},
		{reason: "hooks", data: zipped(record(one, hook)), want: []handover.Recorded{service, incidental("batch", "v1", "Job", "init")}},
		{reason: "definitions", data: zipped(record(one, definitions)), want: []handover.Recorded{service, incidental("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "carts.example.com")}},
		{reason: "of an old Helm", data: base64.StdEncoding.EncodeToString(record(one, nil)), want: []handover.Recorded{service}},
		{reason: "nothing", err: "it is no JSON of a release"},
		{reason: "no base64", data: "{}", err: "it is not encoded as base64"},
		{reason: "no JSON", data: zipped([]byte("secret")), err: "it is no JSON of a release"},
		{reason: "broken off", data: base64.StdEncoding.EncodeToString([]byte{0x1f, 0x8b, 0x08, 0, 0}), err: "it is not compressed by gzip"},
		{reason: "of another name", data: zipped(record(one, map[string]any{"name": "other"})), err: "it is of another release than its name and namespace say"},
		{reason: "of another namespace", data: zipped(record(one, map[string]any{"namespace": "other"})), err: "it is of another release than its name and namespace say"},
		{reason: "no YAML", data: zipped(record(one+"---\nsecret: [\n", nil)), err: "document 2 of its manifest is no valid YAML"},
		{reason: "no object", data: zipped(record("- secret", nil)), err: "one of its objects lacks apiVersion, kind or name"},
		{reason: "a list in a list", data: zipped(record("apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: List, items: []}]\n", nil)), err: "one of its objects lacks apiVersion, kind or name"},
		{reason: "a bomb", data: zipped(bytes.Repeat([]byte(" "), limits.HelmReleaseBytes+1)), err: "it has more than 33554432 bytes uncompressed, which is the limit"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			t.Parallel()
			got, err := handover.ReadHelmRelease(tc.data, "store", "web")
			text := ""
			if err != nil {
				text = err.Error()
				got = &handover.HelmRelease{}
			}
			if diff := cmp.Diff(tc.want, got.Objects); diff != "" || text != tc.err {
				t.Errorf("error %q, want %q (-want +got):\n%s", text, tc.err, diff)
			}
			if tc.err == "" && got.Status != "deployed" {
				t.Errorf("the status is %q", got.Status)
			}
		})
	}
}

func TestRecordedKeys(t *testing.T) {
	t.Parallel()
	r := handover.Recorded{GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Namespace: "shop", Name: "web"}
	want := [2]objects.Key{{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}, {Group: "apps", Kind: "Deployment", Name: "web"}}
	if diff := cmp.Diff(want, r.Keys()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReadKappApp(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason, spec string
		want         *handover.KappApp
		err          string
	}{
		{
			reason: "as kapp writes it",
			spec: `{"labelKey":"kapp.k14s.io/app","labelValue":"1711","lastChangeName":"web-change-x","lastChange":{"startedAt":"2026-01-01T00:00:00Z","successful":true,"namespaces":["store"]},` +
				`"usedGVs":[{"Group":"apps","Version":"v1"}],"usedGKs":[{"Group":"","Kind":"ConfigMap"},{"Group":"apps","Kind":"Deployment"}]}`,
			want: &handover.KappApp{Value: "1711", Kinds: []schema.GroupKind{{Kind: "ConfigMap"}, {Group: "apps", Kind: "Deployment"}}, Namespaces: []string{"store"}},
		},
		{reason: "nothing", err: "its field spec is no JSON of an app"},
		{reason: "another label", spec: `{"labelKey":"app","labelValue":"web","usedGKs":[{"Kind":"Secret"}]}`, err: "it names no value of the label kapp.k14s.io/app"},
		{reason: "no value", spec: `{"labelKey":"kapp.k14s.io/app","usedGKs":[{"Kind":"Secret"}]}`, err: "it names no value of the label kapp.k14s.io/app"},
		{reason: "no value that can be", spec: `{"labelKey":"kapp.k14s.io/app","labelValue":"a,b!=c"}`, err: "it names no value of the label kapp.k14s.io/app"},
		{reason: "of an old kapp", spec: `{"labelKey":"kapp.k14s.io/app","labelValue":"1711"}`, err: "it names no kinds of objects, as records of older versions of kapp do. Deploy it once more with a later one, or name the objects"},
		{reason: "many kinds", spec: `{"labelKey":"kapp.k14s.io/app","labelValue":"1711","usedGKs":[{"Kind":"A"}` + strings.Repeat(`,{"Kind":"A"}`, limits.KappKinds) + `]}`, err: "it names more than 500 kinds or namespaces, which is the limit. Name the objects"},
	} {
		got, err := handover.ReadKappApp(map[string]string{"spec": tc.spec})
		text := ""
		if err != nil {
			text = err.Error()
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || text != tc.err {
			t.Errorf("%s: error %q (-want +got):\n%s", tc.reason, text, diff)
		}
	}
}

func TestKappDeployed(t *testing.T) {
	t.Parallel()
	app := &handover.KappApp{Value: "1711"}
	for reason, tc := range map[string]struct {
		label, identity string
		want            bool
	}{
		"made by kapp":            {"1711", "v1;shop/apps/Deployment/web;apps/v1", true},
		"of another app":          {"1712", "v1;shop/apps/Deployment/web;apps/v1", false},
		"made by a controller":    {"1711", "", false},
		"a copy of an annotation": {"1711", "v1;shop/apps/Deployment/web-2;apps/v1", false},
		"a longer name":           {"1711", "v1;shop/apps/Deployment/web", false},
	} {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}}
		o.SetNamespace("shop")
		o.SetName("web")
		o.SetLabels(map[string]string{"kapp.k14s.io/app": tc.label})
		o.SetAnnotations(map[string]string{"kapp.k14s.io/identity": tc.identity})
		if got := app.Deployed(o); got != tc.want {
			t.Errorf("%s: %v", reason, got)
		}
	}
}
