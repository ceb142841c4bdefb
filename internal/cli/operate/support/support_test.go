package support_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/operate/support"
	"lockstep.run/lockstep/internal/loader/sensitive"
	"lockstep.run/lockstep/test/require"
)

// planted returns a secret that no output must contain.
func planted(n int) string { return fmt.Sprintf("planted-%d-Xq7vB9", n) }

func TestKeep(t *testing.T) {
	t.Parallel()
	n := 0
	next := func() string { n++; return planted(n) }
	object := func(kind string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": "shown-" + kind, "annotations": map[string]any{"a": next()}},
			"data": map[string]any{"k": base64.StdEncoding.EncodeToString([]byte(next()))}, "stringData": map[string]any{"k": next()}, "spec": map[string]any{"token": next()}}
	}
	meta := func() map[string]any {
		return map[string]any{
			"name": "web", "namespace": "shop",
			"labels":        map[string]any{"app.kubernetes.io/name": "shown", "team": next()},
			"managedFields": []any{next()},
			"annotations": map[string]any{
				"kubectl.kubernetes.io/last-applied-configuration": next(), "package-operator.run/package-config": next(), "package-operator.run/revision": "shown",
			},
		}
	}
	template := func() map[string]any {
		return map[string]any{"serviceAccountName": "shown", "phases": []any{map[string]any{"name": "shown", "objects": []any{map[string]any{"object": object("Secret")}, map[string]any{"object": object("ConfigMap")}}}}}
	}
	for _, test := range []struct {
		kind string
		spec map[string]any
	}{
		{"Package", map[string]any{"image": "shown", "config": map[string]any{"a": next(), "b": []any{next()}}, "patches": []any{map[string]any{"patch": next()}}, "commonMetadata": map[string]any{"labels": map[string]any{"a": next()}}}},
		{"ClusterObjectDeployment", map[string]any{"paused": true, "template": map[string]any{"metadata": map[string]any{"annotations": map[string]any{"a": next()}}, "spec": template()}}},
		{"ObjectSet", map[string]any{"phases": template()["phases"], "lifecycleState": "shown"}},
		{"ObjectSetPhase", map[string]any{"objects": []any{map[string]any{"object": object("Secret")}}, "revision": "shown"}},
		{"ObjectTemplate", map[string]any{"template": next(), "sources": []any{map[string]any{"name": "shown"}}}},
		{"PackageRepository", map[string]any{"source": map[string]any{"inline": map[string]any{"files": map[string]any{"a": next()}}, "git": map[string]any{"url": "https://u:" + next() + "@host/shown"}}}},
		{"HostedClusterPackage", map[string]any{"template": map[string]any{"spec": map[string]any{"image": "shown", "config": map[string]any{"a": next()}}}}},
		{"ImageConfig", map[string]any{"matchImages": "shown", "verification": map[string]any{"authorities": []any{map[string]any{"name": "shown", "key": map[string]any{"pem": next()}}}}}},
		{"AvailablePackage", map[string]any{"versions": []any{map[string]any{"files": map[string]any{"a": next()}}}}},
		{"Deployment", map[string]any{"replicas": "shown", "template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"env": []any{map[string]any{"name": "shown", "value": next()}}, "args": []any{"--proxy=https://u:" + next() + "@shown", "--token=" + next()}}}}}}},
		{"Secret", map[string]any{"a": next()}}, // a kind that support does not read
	} {
		in := map[string]any{"apiVersion": "v1", "kind": test.kind, "metadata": meta(), "spec": test.spec, "data": map[string]any{"a": next()},
			"status": map[string]any{"conditions": []any{map[string]any{"message": "shown https://u:" + next() + "@host " + "Bearer " + next()}}}}
		r := support.NewRedactor(support.Sensitive(in), nil)
		raw, err := json.Marshal(support.Show(support.Keep(in), r.Text))
		require.NoError(t, err)
		for i := 1; i <= n; i++ {
			if strings.Contains(string(raw), planted(i)) {
				t.Errorf("%s: %s is in\n%s", test.kind, planted(i), raw)
			}
		}
		if !strings.Contains(string(raw), `"name":"web"`) || test.kind != "AvailablePackage" && !strings.Contains(string(raw), "shown") {
			t.Errorf("%s: too little is in\n%s", test.kind, raw)
		}
	}
	if n < 30 {
		t.Errorf("only %d secrets are planted", n)
	}
}

func TestRedactor(t *testing.T) {
	t.Parallel()
	set := map[string]any{"metadata": map[string]any{"annotations": map[string]any{"package-operator.run/package-config": `{"db":{"key":"of long ago"}}`}}, "spec": map[string]any{
		"config": map[string]any{"password": "correct horse", "name": "shop", "short": "s3cr"},
		"phases": []any{map[string]any{"kind": "Secret", "data": map[string]any{"k": base64.StdEncoding.EncodeToString([]byte("battery staple"))}}},
	}}
	r := support.NewRedactor(support.Sensitive(set), map[string]bool{"shop": true})
	for text, want := range map[string]string{
		"webhook: password correct horse is weak":                                  "webhook: password [redacted] is weak",
		"it said of long ago":                                                      "it said [redacted]",
		"it said battery staple":                                                   "it said [redacted]",
		"it said YmF0dGVyeSBzdGFwbGU=":                                             "it said [redacted]",
		"s3cr is short, shop is a name":                                            "[redacted] is short, shop is a name",
		"token=abc and \"api_key\": \"def\", then":                                 "token=[redacted] and \"api_key\": \"[redacted]\", then",
		"eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln x":                              "[redacted] x",
		"a\n-----BEGIN EC PRIVATE KEY-----\nMHcC\n-----END EC PRIVATE KEY-----\nb": "a\n[redacted]\nb",
		"GET https://u:p@host/x?sig=1 failed":                                      "GET https://…@host/x?… failed",
		"dial postgres://shop:hunter2@db:5432/x?a=b failed":                        "dial postgres://…@db:5432/x?a=b failed",
		`said {"msg":"{\"password\":\"hunter2\", \"a\":1}"}`:                       `said {"msg":"{\"password\":\"[redacted]", \"a\":1}"}`,
		"secretKey: hunter2 aws_secret_access_key=hunter2":                         "secretKey: [redacted] aws_secret_access_key=[redacted]",
		"registry.example.com/shop:v1":                                             "registry.example.com/shop:v1",
	} {
		require.Equal(t, want, r.Text(text), text)
	}
	var many []string
	for i := range 10 {
		many = append(many, strings.Repeat(fmt.Sprintf("%d", i), support.MaxValues/8))
	}
	if r := support.NewRedactor(many, nil); r.Complete() || r.Text("a sentence") != "[withheld]" || r.Text("Available") != "Available" {
		t.Error("more values than can be looked for: texts are shown")
	}
}

// If a log is longer than a file, the archive has its end, because a maintainer needs the latest
// lines.
func TestEndOfALog(t *testing.T) {
	t.Parallel()
	for _, lines := range []int{0, 10, support.MaxFileBytes / 64, support.MaxFileBytes / 16} {
		var log strings.Builder
		for i := range lines {
			fmt.Fprintf(&log, "%063d\n", i)
		}
		last, cut, err := support.End(strings.NewReader(log.String()))
		if err != nil || cut != (len(last) < log.Len()) || len(last) > support.MaxFileBytes || !strings.HasSuffix(log.String(), string(last)) ||
			len(last)%64 != 0 || len(last) < min(log.Len(), support.MaxFileBytes/2) {
			t.Errorf("%d lines: %d bytes, cut: %v, %v", lines, len(last), cut, err)
		}
	}
}

func TestArchive(t *testing.T) {
	t.Parallel()
	write := func() []byte {
		a := support.Archive{Created: time.Unix(1, 0).UTC()}
		a.Add("versions.json", "versions", []byte("{}"))
		for i := range 8 {
			a.Add(fmt.Sprintf("logs/%d", i), "a log", bytes.Repeat([]byte("x"), support.MaxFileBytes+1))
		}
		a.Lack("metrics", "they are not read")
		var b bytes.Buffer
		require.NoError(t, a.Write(&b))
		return b.Bytes()
	}
	out := write()
	if !bytes.Equal(out, write()) {
		t.Error("the same content makes other bytes")
	}
	zipped, err := gzip.NewReader(bytes.NewReader(out))
	require.NoError(t, err)
	files, total := map[string]string{}, 0
	for r := tar.NewReader(zipped); ; {
		head, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		raw, err := io.ReadAll(r)
		require.NoError(t, err)
		files[head.Name], total = string(raw), total+len(raw)
	}
	contents := files["support/CONTENTS.txt"]
	for _, want := range []string{"versions.json  2        versions\n", "metrics: they are not read", "logs/0: the first 4194304 bytes of 4194305", "logs/5: the archive would be larger than 20 MiB"} {
		require.Contains(t, contents, want)
	}
	if files["support/versions.json"] != "{}" || total > support.MaxBytes+len(contents) {
		t.Errorf("%d bytes", total)
	}
}

// A number might be a password. Ports and times are shorter.
func TestNumbersAreRedacted(t *testing.T) {
	t.Parallel()
	annotated := map[string]any{"metadata": map[string]any{"annotations": map[string]any{corev1alpha1.PackageConfigAnnotation: `{"old":20110815123456789,"rate":12345678.5}`}}}
	found := append(support.Sensitive(annotated), support.Sensitive(map[string]any{"spec": map[string]any{"config": map[string]any{"pin": int64(4711081512), "float": 987654321.0, "port": int64(8443)}}})...)
	slices.Sort(found)
	if want := []string{"12345678.5", "20110815123456789", "4711081512", "987654321"}; !slices.Equal(found, want) {
		t.Errorf("got %v, want %v", found, want)
	}
	const text = "the login with 4711081512 at port 8443 failed"
	require.Equal(t, strings.Replace(text, "4711081512", sensitive.Mark, 1), support.NewRedactor(found, nil).Text(text))
}
