package ui

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/support"
)

const hostileName = `\"><img src=x onerror=alert(1)>`

// archived is the cluster of an archive.
func archived(t *testing.T) *cluster.Cluster {
	t.Helper()
	a := &support.Archive{Created: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	add := func(kind, items string) {
		a.Add("objects/"+kind+".json", "objects", []byte(`{"apiVersion":"v1","kind":"List","items":[`+items+`]}`))
	}
	condition := func(typ, status, message string) string {
		return `{"type":"` + typ + `","status":"` + status + `","reason":"R","message":"` + message + `","observedGeneration":1,"lastTransitionTime":"2026-11-20T11:00:00Z"}`
	}
	pkg := func(kind, meta, message string) string {
		return `{"apiVersion":"package-operator.run/v1alpha1","kind":"` + kind + `","metadata":{` + meta + `,"generation":1,"creationTimestamp":"2026-11-18T12:00:00Z","finalizers":["package-operator.run/metrics"]},
			"spec":{"image":"registry.example.com/web:1"},"status":{"observedGeneration":1,"conditions":[` + condition("Invalid", "True", message) + `]}}`
	}
	add("package", pkg("Package", `"name":"web","namespace":"shop","uid":"1"`, "config.title is missing")+","+pkg("Package", `"name":"other","namespace":"shop","uid":"2"`, hostileName))
	add("clusterpackage", "")
	add("packagerepository", "")
	add("objectset", `{"apiVersion":"package-operator.run/v1alpha1","kind":"ObjectSet","metadata":{"name":"web-1","namespace":"shop","uid":"3","labels":{"package-operator.run/package":"web"}},"spec":{"revision":1,"phases":[]}}`)
	add("objectdeployment", "")
	a.Add("explain/package_shop_web.json", "why", []byte(`{"kind":"Package","namespace":"shop","name":"web","summary":"Invalid","reason":"Package","cause":"what explain said then`+hostileName+`","remedy":"do that","chain":[]}`))
	a.Lack("logs", "they may not be read")
	file := filepath.Join(t.TempDir(), "a.tar.gz")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Write(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	cl, err := cluster.OpenArchive(file, "default")
	if err != nil {
		t.Fatal(err)
	}
	return cl
}

// The pages of an archive are those of a cluster, without what needs an API server, and say what they are.
func TestArchive(t *testing.T) {
	t.Parallel()
	cl := archived(t)
	if cl.Config.Transport == nil {
		t.Fatal("requests leave this process")
	}
	b := serve(t, cl)
	for path, want := range map[string]struct{ has, lacks []string }{
		"packages": {[]string{"as it was at 2026-11-20 12:00:00 UTC", "logs: they may not be read", "config.title is missing", `data-key="package shop/web"`, ">2d<", "The archive has no list of clusterpackagerepositories."},
			[]string{"data-stream", "<img", "You may"}},
		"packages/shop/web":   {[]string{"what explain said then", "do that", "Revisions", "archive of 2026-11-20"}, []string{"data-stream", "/plan", "/diff", "<form", "<img", "manager has"}},
		"packages/shop/other": {[]string{"&lt;img src=x"}, []string{"<img"}},
		"graph":               {[]string{"Dependencies"}, nil},
		"catalogue":           {[]string{"an archive does not have what repositories offer"}, []string{"Everything that follows"}},
	} {
		status, text := b.get(path)
		if status != http.StatusOK {
			t.Errorf("%s: %d", path, status)
		}
		for _, has := range want.has {
			if !strings.Contains(text, has) {
				t.Errorf("%s lacks %q:\n%s", path, has, text)
			}
		}
		for _, lacks := range want.lacks {
			if strings.Contains(text, lacks) {
				t.Errorf("%s has %q:\n%s", path, lacks, text)
			}
		}
	}
	for _, path := range []string{"packages/shop/web/plan?revision=1", "packages/shop/web/diff?from=1&to=1"} {
		if status, _ := b.get(path); status != http.StatusNotFound {
			t.Errorf("%s: %d", path, status)
		}
	}
}
